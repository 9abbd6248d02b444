terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  alias    = "north"
  endpoint = "http://ironic.north.example.com:6385"
}

provider "metal" {
  alias    = "south"
  endpoint = "http://ironic.south.example.com:6385"
  provisioning_limit = {
    max_concurrent = 5 # a small site
  }
}

variable "bmc_passwords" {
  type      = map(string)
  ephemeral = true
}

module "north" {
  source    = "./site"
  providers = { metal = metal.north }

  hosts        = { north-01 = "192.0.2.11", north-02 = "192.0.2.12" }
  servers      = 2
  bmc_password = var.bmc_passwords["north"]
}

module "south" {
  source    = "./site"
  providers = { metal = metal.south }

  hosts        = { south-01 = "198.51.100.11" }
  servers      = 1
  bmc_password = var.bmc_passwords["south"]
}

output "servers" {
  value = { north = module.north.servers, south = module.south.servers }
}
