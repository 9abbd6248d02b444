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
  # The unit of a machine in the rack is also the number of its port on both switches.
  machines = {
    "rack12-01" = { unit = 1, bmc = "192.0.2.11", macs = ["52:54:00:12:01:0a", "52:54:00:12:01:0b"] }
    "rack12-02" = { unit = 2, bmc = "192.0.2.12", macs = ["52:54:00:12:02:0a", "52:54:00:12:02:0b"] }
  }
}

resource "metal_host" "rack12" {
  for_each = local.machines
  name     = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "available"

  inspect          = true
  inspect_triggers = { cabling = "2026-11-26" } # change it after you have moved cables

  ports = {
    (each.value.macs[0]) = { expect_neighbor = { switch = "tor-12a", port = "Ethernet1/${each.value.unit}" } }
    (each.value.macs[1]) = { expect_neighbor = { switch = "tor-12b", port = "Ethernet1/${each.value.unit}" } }
  }
}

resource "metal_allocation" "database" {
  name           = "db-1"
  resource_class = "baremetal"
  require        = { cabling = true } # only a machine whose cables are proved

  depends_on = [metal_host.rack12]
}
