variable "bmc_password" {
  type      = string
  ephemeral = true # stored neither in the plan nor in the state
}

# Names every discovered machine of the rack, such as r12-RK000001.
resource "metal_discovery_import" "rack12" {
  name          = "rack12"
  name_template = { prefix = "r12-", hardware_details = "serial-number" }
  filter        = { manufacturer = "^Example", bmc_cidr = "198.18.0.0/24" }
  max_hosts     = 40

  discovered_before = plantimestamp() # a machine that appears during the apply waits for the next plan
}

# The same plan imports and manages them.
import {
  for_each = metal_discovery_import.rack12.hosts
  to       = metal_host.rack12[each.key]
  id       = each.value.id
}

resource "metal_host" "rack12" {
  for_each = metal_discovery_import.rack12.hosts

  name = each.key
  bmc = each.value.bmc_address == null ? null : {
    address             = "redfish-virtualmedia://${each.value.bmc_address}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password # the default password of the delivered machines
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "manageable" # "available" also cleans the machines
}
