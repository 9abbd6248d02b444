terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  provisioning_limit = { max_concurrent = 5 }
}

locals {
  names = toset([for n in range(1, 41) : format("rack1-%02d", n)])
}

resource "metal_host" "fleet" {
  for_each       = local.names
  name           = each.key
  driver         = "fake-hardware"
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_allocation" "web" {
  for_each        = metal_host.fleet
  name            = replace(each.key, "rack1-", "web-")
  resource_class  = "baremetal"
  candidate_nodes = [each.value.name]
}

resource "metal_deployment" "web" {
  for_each      = metal_allocation.web
  node_id       = each.value.node_id
  allocation_id = each.value.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
