variable "bmc_password" {
  type      = string
  ephemeral = true # in no plan file and no state
}

# A server with Redfish, deployed through virtual media.
resource "metal_host" "rack2_01" {
  name = "rack2-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1 # raise it when the password has changed
  }
  ports = {
    "52:54:00:02:00:01" = { pxe_enabled = true, physical_network = "provisioning" }
    "52:54:00:02:00:02" = { pxe_enabled = false }
  }

  resource_class = "baremetal"
  traits         = ["CUSTOM_NVME"]
  capabilities   = { boot_mode = "uefi" }
  root_device    = { wwn = "0x5000c500a1b2c3d4" }
  description    = "Rack 2, unit 1"
  extra          = { rack = "2", unit = 1 }

  inspect      = true
  target_state = "available" # cleans the machine: its disks may be erased
}
