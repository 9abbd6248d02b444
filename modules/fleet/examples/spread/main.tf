# A group whose members are spread over racks. The CSV says in which rack a machine is, and what kind of machine it is; the kinds
# have bonds, BIOS settings and a RAID.

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

locals {
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  bios = { LogicalProc = "Disabled", ProcVirtualization = "Enabled" }
}

module "fleet" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/fleet?ref=v0.1.0

  csv          = file("${path.module}/machines.csv")
  bmc_password = var.bmc_password
  defaults = {
    bmc_username   = "terraform"
    resource_class = "compute"
    extra          = { site = "north" }
  }

  hardware = {
    r650 = {
      port_groups = {
        bond0 = { cards = [1, 2], mode = "802.3ad", properties = { miimon = "100" } }
      }
      pxe_cards     = [1]
      bios_settings = local.bios
      raid          = { volumes = [{ level = "1", size_gb = "MAX", root = true }] }
      boot_mode     = "uefi"
      capabilities  = { boot_mode = "uefi" }
    }
    r650-1g = { bios_settings = local.bios } # one network card, no RAID controller
  }

  roles = {
    db = { image = local.image }
    web = {
      image      = local.image
      on_failure = "quarantine" # a member whose machine fails gets another one in the next apply
      rollout    = { group = "web", max_unavailable = 1 }
      group = {
        size           = 3
        resource_class = "compute"
        spread_by      = "extra.rack"
        max_per_domain = 1
      }
    }
  }
}

# Warns while a machine lacks some of its settings, and fails no apply.
check "hardware" {
  assert {
    condition     = alltrue([for host in module.fleet.hosts : length(host.pending_changes) == 0])
    error_message = "These machines wait: ${join("; ", [for name, host in module.fleet.hosts : "${name} for ${join(" and ", host.pending_changes)}" if length(host.pending_changes) > 0])}."
  }
}

output "deployments" {
  value = module.fleet.deployments
}
