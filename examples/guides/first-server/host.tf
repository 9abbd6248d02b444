terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "bmc_password" {
  description = "Password of the BMC. Set TF_VAR_bmc_password."
  type        = string
  ephemeral   = true # in no plan file and no state
}

resource "metal_host" "web" {
  name = "rack1-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
    verify_ca           = false # for the BMC's self-signed certificate
  }
  # What the machine boots for inspection, cleaning and deployment. Leave both out if the conductor's configuration has them.
  driver_info = {
    deploy_kernel  = "http://images.example.com/ipa.kernel"
    deploy_ramdisk = "http://images.example.com/ipa.initramfs"
  }
  resource_class = "baremetal"
  root_device    = { name = "/dev/sda" }

  inspect      = true
  target_state = "available" # cleans the machine: its disks may be erased
}
