terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_passwords" {
  description = "Password of the BMCs, by rack."
  type        = map(string)
  ephemeral   = true # in no plan file and no state
}

module "fleet" {
  source = "github.com/terraform-provider-metal/terraform-provider-metal//modules/fleet?ref=v0.1.0"

  csv           = file("${path.module}/machines.csv")
  bmc_passwords = var.bmc_passwords
  defaults      = { bmc_username = "root", extra = { site = "north" } }

  # Kinds of machines: the column "hardware".
  hardware = {
    bonded = {
      port_groups   = { bond0 = { cards = [1, 2], mode = "802.3ad" } } # the first two of macs
      bios_settings = { LogicalProc = "Disabled" }
      boot_mode     = "uefi"
      capabilities  = { boot_mode = "uefi" }
    }
    plain = { bios_settings = { LogicalProc = "Disabled" } }
  }

  roles = {
    # The machines with "db" in the column "role".
    db = {
      image = {
        url      = "http://images.example.com/debian-12-db.qcow2"
        checksum = "http://images.example.com/SHA256SUMS"
      }
      user_data = "#cloud-config\npackages: [postgresql]\n"
    }

    # Machines that Ironic chooses, in different racks. They become web-0 and web-1.
    web = {
      image = {
        url      = "http://images.example.com/debian-12-web.qcow2"
        checksum = "http://images.example.com/SHA256SUMS"
      }
      user_data = "#cloud-config\npackages: [nginx]\n"
      group = {
        size           = 2
        resource_class = "compute"
        spread_by      = "extra.rack"
        max_per_domain = 1
      }
      on_failure = "quarantine" # if a machine fails, the next apply deploys another one
    }
  }
}

output "deployments" {
  value = module.fleet.deployments
}
