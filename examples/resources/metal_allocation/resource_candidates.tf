resource "metal_allocation" "db" {
  name            = "db"
  resource_class  = "baremetal"
  candidate_nodes = ["rack1-03", "rack1-04"]
}
