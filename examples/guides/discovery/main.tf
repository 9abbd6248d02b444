terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT is in the environment

variable "bmc_password" {
  description = "Password that the BMCs have at delivery."
  type        = string
  ephemeral   = true # in no plan file and no state
}

variable "removed" {
  description = "Serial numbers of machines to take out of service for good."
  type        = set(string)
  default     = []
}

resource "metal_discovery_import" "rack12" {
  name          = "rack12"
  name_template = { prefix = "r12-", hardware_details = "serial-number" }

  filter    = { manufacturer = "^Example", bmc_cidr = "198.18.0.0/24" } # only machines of this rack
  max_hosts = 40
  exclude   = var.removed

  discovered_before = plantimestamp() # a machine that appears during the apply waits for the next plan
}

locals {
  rack12 = {
    for name, machine in metal_discovery_import.rack12.hosts : name => machine
    if machine.bmc_address != null && !contains(var.removed, machine.serial_number)
  }
}

import {
  for_each = local.rack12
  to       = metal_host.rack12[each.key]
  id       = each.value.id
}

resource "metal_host" "rack12" {
  for_each = local.rack12

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc_address}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "manageable" # "available" cleans the machines: it erases their disks
  on_failure     = "warn"       # a machine that fails holds up no other
}

output "rack12" {
  value = { for name, machine in local.rack12 : name => machine.bmc_address }
}
