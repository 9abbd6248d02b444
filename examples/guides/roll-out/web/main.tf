terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "image" {
  default = "debian-12"
}

resource "metal_allocation_group" "web" {
  name           = "web"
  size           = 6
  resource_class = "baremetal"
}

resource "metal_deployment" "web" {
  for_each = metal_allocation_group.web.members

  node_id       = each.value.node_id
  allocation_id = each.value.id
  image = {
    url      = "http://images.example.com/${var.image}.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }

  ready_check = { tcp = "${each.key}.example.com:22" }
  rollout     = { canary = 1 }
}
