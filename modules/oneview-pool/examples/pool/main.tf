# A pool of servers that Ironic shares with OneView users. Two of them are deployed; the others stay free for both.

terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT and ONEVIEW_… in the environment say where Ironic and OneView are

variable "bmc_password" {
  type      = string
  ephemeral = true # in no plan and no state
}

module "pool" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/oneview-pool?ref=v0.1.0

  server_profile_template = "Ironic BL460c Gen10"
  bmc                     = { username = "ironic" }
  bmc_password            = var.bmc_password
  host_settings = {
    resource_class = "bl460c"
    driver_info = {
      deploy_kernel  = "http://images.example.com/ipa.kernel"
      deploy_ramdisk = "http://images.example.com/ipa.initramfs"
    }
  }
  deployments = {
    for i in range(2) : "app-${i}" => {
      image = {
        url      = "http://images.example.com/debian-12.qcow2"
        checksum = "http://images.example.com/SHA256SUMS"
      }
    }
  }
}

output "hosts" {
  value = module.pool.hosts
}

output "deployments" {
  value = module.pool.deployments
}
