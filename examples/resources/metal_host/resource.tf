variable "bmc_password" {
  type      = string
  ephemeral = true # never stored in a plan or in state
}

resource "metal_host" "rack2_01" {
  name = "rack2-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1 # change it when the password changes
  }
  ports = {
    "52:54:00:02:00:01" = { pxe_enabled = true, physical_network = "provisioning" }
    "52:54:00:02:00:02" = { pxe_enabled = false }
  }

  resource_class = "baremetal"
  traits         = ["CUSTOM_NVME"]
  capabilities   = { boot_mode = "uefi" }
  root_device    = { wwn = "0x5000c500a1b2c3d4" }

  inspect      = true        # boots the machine
  target_state = "available" # cleans the machine: its disks may be erased
}
