variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  rack3 = {
    rack3-01 = { bmc = "192.0.2.31", mac = "52:54:00:03:00:01" }
    rack3-02 = { bmc = "192.0.2.32", mac = "52:54:00:03:00:02" }
  }
}

resource "metal_host" "rack3" {
  for_each = local.rack3

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports          = { (each.value.mac) = {} }
  resource_class = "rack3"
  target_state   = "available"
}

resource "metal_allocation" "app" {
  count = 2

  name           = "app-${count.index}"
  resource_class = "rack3"

  depends_on = [metal_host.rack3] # reserve nodes only after all hosts are available
}
