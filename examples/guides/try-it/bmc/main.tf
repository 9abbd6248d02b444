terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  poll_interval = "1s"
}

variable "bmc" {
  type    = string
  default = "192.0.2.10"
}

resource "metal_host" "rack13" {
  name           = "rack13-01"
  resource_class = "baremetal"
  bmc = {
    address  = "redfish+https://${var.bmc}"
    username = "admin"
    password = "secret" # only the fake takes any
  }
}
