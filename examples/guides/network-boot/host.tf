terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "bmc_password" {
  description = "Password of the BMCs. Set TF_VAR_bmc_password."
  type        = string
  ephemeral   = true # in no plan file and no state
}

locals {
  # What the machines boot. Leave it out if the conductor's configuration has it.
  ramdisk = {
    deploy_kernel  = "http://images.example.com/ipa.kernel"
    deploy_ramdisk = "http://images.example.com/ipa.initramfs"
  }
}

resource "metal_host" "ipmi" {
  name = "rack2-01"
  bmc = {
    address             = "ipmi://192.0.2.21"
    username            = "ironic"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  hardware_interfaces = { boot = "ipxe" }
  ports = {
    "52:54:00:03:00:01" = { pxe_enabled = true } # the card that boots
    "52:54:00:03:00:02" = { pxe_enabled = false }
  }
  capabilities   = { boot_mode = "uefi" } # as the machine's setup says; "bios" for machines without UEFI
  driver_info    = local.ramdisk
  resource_class = "baremetal"

  inspect      = true
  target_state = "available" # cleans the machine: its disks may be erased
}

# A Redfish BMC tells Ironic the network cards when it inspects the machine.
resource "metal_host" "redfish" {
  name = "rack2-02"
  bmc = {
    address             = "redfish://192.0.2.22/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
    verify_ca           = false # for the BMC's self-signed certificate
  }
  hardware_interfaces = { boot = "ipxe", inspect = "redfish" }
  driver_info         = local.ramdisk
  resource_class      = "baremetal"

  inspect      = true
  target_state = "available"
}
