# Machines, addresses and networks from one YAML file.

terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT

variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  file  = yamldecode(file("${path.module}/machines.yaml"))
  image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
}

module "inventory" {
  source = "../.."

  machines           = local.file.machines
  networks           = local.file.networks
  bmc_address_format = "redfish-virtualmedia://%s/redfish/v1/Systems/1"
}

module "fleet" {
  source = "../../../fleet"

  machines     = module.inventory.machines
  defaults     = { bmc_username = "terraform", resource_class = "compute" }
  bmc_password = var.bmc_password

  # "ignore": a change of an address or a name in the file does not wipe a machine that runs.
  roles = {
    db  = { image = local.image, on_change = "ignore" }
    web = { image = local.image, on_change = "ignore" }
  }
}

output "hosts" {
  value = module.fleet.hosts
}

output "left_out" {
  description = "Machines of the file that are no hosts, with their status."
  value       = module.inventory.left_out
}
