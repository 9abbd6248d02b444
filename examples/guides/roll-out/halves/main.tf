terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "image" {
  default = "debian-12"
}

variable "image_of_first" { # null: image
  default = null
}

locals {
  first = ["app-0", "app-1"]
}

resource "metal_allocation_group" "app" {
  name           = "app"
  size           = 4
  resource_class = "baremetal"
}

resource "metal_deployment" "app" {
  for_each = metal_allocation_group.app.members

  node_id       = each.value.node_id
  allocation_id = each.value.id
  image = {
    url      = "http://images.example.com/${contains(local.first, each.key) ? coalesce(var.image_of_first, var.image) : var.image}.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
