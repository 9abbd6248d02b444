# The same with an import block in the root module: the plan says "to import" and shows what changes on each node.

terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT in the environment says where Ironic is

variable "bmc_password" {
  type      = string
  ephemeral = true
}

module "rack13" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/rack-discovery?ref=v0.1.0

  name         = "r13"
  filter       = { bmc_cidr = "198.18.0.0/24" }
  bmc          = { username = "root" }
  bmc_password = var.bmc_password
}

import {
  for_each = module.rack13.discovered
  to       = module.rack13.metal_host.rack[each.key]
  id       = each.value
}

output "hosts" {
  value = module.rack13.hosts
}
