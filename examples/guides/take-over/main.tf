terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  machines = { # begin with one
    db-01 = "192.0.2.11"
    db-02 = "192.0.2.12"
    db-03 = "192.0.2.13"
  }
  enrolled = toset(["db-01", "db-02"]) # Ironic has these already
}

import {
  for_each = local.enrolled
  to       = metal_host.fleet[each.key]
  id       = each.key
}

resource "metal_host" "fleet" {
  for_each = local.machines

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value}/redfish/v1/Systems/1" # with the scheme that the node has
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  target_state = "manageable" # "available" cleans the machine
  on_destroy   = "forget"
}

resource "metal_deployment" "fleet" {
  for_each = local.machines

  node_id    = metal_host.fleet[each.key].id
  adopt      = true
  on_destroy = "forget"
}
