terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "db" {
  name = "db-1"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.31/redfish/v1/Systems/1" # the new one
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 2
  }
  ports          = { "52:54:00:aa:02:01" = {} } # the new one
  resource_class = "baremetal"
  target_state   = "available"

  replaced = { part = "machine", on = "2026-11-27" }
}
