# Calls the module as its users do.

terraform {
  required_version = ">= 1.8" # functions of providers

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

module "hosts" {
  source = "./database/tests/fake/hosts"
}

module "database" {
  source = "./database"

  environment = "test"
  nodes       = { db-1 = "203.0.113.11/24" }
  depends_on  = [module.hosts]
}
