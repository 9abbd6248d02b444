variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  storage = {
    storage-01 = { bmc = "192.0.2.41", rack = "rack4" }
    storage-02 = { bmc = "192.0.2.42", rack = "rack4" }
    storage-03 = { bmc = "192.0.2.51", rack = "rack5" }
    storage-04 = { bmc = "192.0.2.52", rack = "rack5" }
  }
}

resource "metal_host" "storage" {
  for_each = local.storage

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "storage"
  extra          = { rack = each.value.rack }
  target_state   = "available"
}

resource "metal_allocation_group" "ceph" {
  name           = "ceph"
  size           = 3
  resource_class = "storage"
  spread_by      = "extra.rack"
  max_per_domain = 2

  depends_on = [metal_host.storage] # reserve nodes only after all hosts are available
}
