terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

locals {
  racks = {
    rack1-01 = "52:54:00:01:00:01" # was "r1"
    rack1-02 = "52:54:00:01:00:02"
  }
}

resource "metal_host" "rack" {
  for_each = local.racks

  name           = each.key
  driver         = "fake-hardware"
  ports          = { (each.value) = {} }
  resource_class = "rename"
  target_state   = "available"
}

resource "metal_allocation" "server" {
  for_each = local.racks

  name            = each.key
  resource_class  = "rename"
  candidate_nodes = [metal_host.rack[each.key].id]
}

resource "metal_deployment" "server" {
  for_each = local.racks

  node_id       = metal_allocation.server[each.key].node_id
  allocation_id = metal_allocation.server[each.key].id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}

# One block for each resource with that key. Remove them after the apply.
moved {
  from = metal_host.rack["r1"]
  to   = metal_host.rack["rack1-01"]
}

moved {
  from = metal_allocation.server["r1"]
  to   = metal_allocation.server["rack1-01"]
}

moved {
  from = metal_deployment.server["r1"]
  to   = metal_deployment.server["rack1-01"]
}
