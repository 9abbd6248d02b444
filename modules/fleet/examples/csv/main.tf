# A rack from a CSV file: every machine becomes a host, and the column "role" says what it runs.

terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT in the environment says where Ironic is

variable "bmc_password" {
  type      = string
  ephemeral = true # in no plan and no state
}

module "fleet" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/fleet?ref=v0.1.0

  csv          = file("${path.module}/machines.csv")
  defaults     = { bmc_username = "terraform" }
  bmc_password = var.bmc_password

  roles = {
    web = {
      image = {
        url      = "http://images.example.com/debian-12.qcow2"
        checksum = "http://images.example.com/SHA256SUMS"
      }
      user_data = <<-EOT
        #cloud-config
        packages: [nginx]
      EOT
    }
    db = {
      image = {
        url      = "http://images.example.com/debian-12.qcow2"
        checksum = "http://images.example.com/SHA256SUMS"
      }
      on_change = "replace" # a new image plans a replacement, which stops in review
    }
  }
}

output "hosts" {
  value = module.fleet.hosts
}

output "ansible_inventory" {
  value = module.fleet.ansible_inventory
}
