# The fake has the machines of nodes.json: rack1-01 to rack1-03 are available, and rack1-04 was deployed by another client.

terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {     # METAL_ENDPOINT is in the environment
  poll_interval = "1s" # a fake is quick; the default of 10s suits real machines
}

variable "image" {
  type    = string
  default = "debian-12"
}

resource "metal_allocation" "web" {
  for_each = { web-1 = "rack1-01", web-2 = "rack1-02" } # allocation = node

  name            = each.key
  resource_class  = "baremetal"
  candidate_nodes = [each.value]
}

resource "metal_deployment" "web" {
  for_each = metal_allocation.web

  node_id       = each.value.node_id
  allocation_id = each.value.id
  image = {
    url      = "http://images.example.com/${var.image}.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}

data "metal_host" "old" {
  name = "rack1-04"
}

import { # it keeps running
  to = metal_deployment.old
  id = "rack1-04"
}

resource "metal_deployment" "old" {
  node_id = data.metal_host.old.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  on_destroy = "forget" # stays deployed when Terraform destroys the rest
}
