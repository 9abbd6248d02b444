terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "protected" {
  type    = bool
  default = true # to wipe a machine that was locked, first apply with -var protected=false
}

locals {
  # The answer of GET /projects/ID/devices, or of: metal device get -p ID -o json
  answer  = jsondecode(file("${path.module}/devices.json"))
  devices = { for device in try(local.answer.devices, local.answer) : device.hostname => device }

  images = { # by operating_system
    debian_12    = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
    ubuntu_24_04 = { url = "http://images.example.com/ubuntu-24.04.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
  }
}

# Machines of your own, with the plans as their resource classes.
resource "metal_allocation" "device" {
  for_each = local.devices

  name           = each.key
  resource_class = each.value.plan.slug
  extra          = { tags = try(each.value.tags, []) }
}

resource "metal_deployment" "device" {
  for_each = local.devices

  node_id       = metal_allocation.device[each.key].node_id
  allocation_id = metal_allocation.device[each.key].id
  image         = local.images[each.value.operating_system.slug]
  config_drive = {
    hostname  = each.key
    user_data = try(coalesce(each.value.userdata), null)
  }
  protected = try(each.value.locked, false) && var.protected
}
