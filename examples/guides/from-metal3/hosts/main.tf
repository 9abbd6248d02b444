terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "same_ironic" {
  description = "Whether this is the Ironic of Metal3, which has the nodes already."
  type        = bool
  default     = false
}

locals {
  files = [for name in ["hosts.yaml", "install-config.yaml"] : "${path.module}/${name}"]
}

import {
  for_each = toset(var.same_ironic ? keys(local.hosts) : [])
  to       = metal_host.metal3[each.key]
  id       = each.key
}

resource "metal_host" "metal3" {
  for_each = local.hosts

  name = each.key # NAMESPACE~NAME, as Metal3 names its nodes
  bmc = {
    address             = each.value.address
    username            = each.value.username
    password_wo         = local.passwords[each.key] # in no plan and no state
    password_wo_version = 1
    verify_ca           = each.value.verify_ca
  }
  ports           = { for mac in each.value.macs : mac => {} }
  capabilities    = each.value.capabilities
  root_device     = each.value.root_device
  automated_clean = each.value.automated_clean
  target_state    = var.same_ironic && each.value.free ? "available" : "manageable" # "available" cleans a new node
  on_destroy      = "forget"
}

resource "metal_deployment" "metal3" {
  for_each = { for name, host in local.hosts : name => host if host.runs }

  node_id    = metal_host.metal3[each.key].id
  adopt      = true
  on_destroy = "forget"
}
