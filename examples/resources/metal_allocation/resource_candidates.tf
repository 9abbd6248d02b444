# One of the named nodes, whichever is free. Hosts of the same configuration are better called by metal_host.….id: then they
# can be renamed.
resource "metal_allocation" "db" {
  name            = "db"
  resource_class  = "baremetal"
  candidate_nodes = ["rack1-03", "rack1-04"]
}
