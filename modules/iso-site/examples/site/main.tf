# A site that runs from one ISO, which has a proxy for all machines, and network settings for some. A new file in networks/
# restarts the machine of that name and no other; another proxy restarts no machine.

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

variable "proxy" {
  type    = string
  default = "http://proxy.example.com:3128"
}

variable "restart_now" {
  type    = set(string)
  default = []
}

locals {
  networks = { for name in fileset("${path.module}/networks", "*.yaml") : trimsuffix(name, ".yaml") => file("${path.module}/networks/${name}") }
  image    = sha256(jsonencode([var.proxy, local.networks])) # the builder of the ISO gives it this name
}

module "hosts" {
  source = "../../../fleet" # github.com/terraform-provider-metal/terraform-provider-metal//modules/fleet?ref=v0.1.0

  csv          = file("${path.module}/machines.csv")
  defaults     = { bmc_username = "root", resource_class = "site" }
  bmc_password = var.bmc_password
}

module "site" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/iso-site?ref=v0.1.0

  iso = {
    url            = "http://images.example.com/site-${local.image}.iso"
    shared_content = { proxy = sha256(var.proxy) }
    quiet_period   = "0s" # the image is complete when it has its name
  }
  machines = {
    for name, host in module.hosts.hosts : name => {
      node_id      = host.id
      host_content = { for machine, network in local.networks : "network" => sha256(network) if machine == name }
    }
  }
  restart_now = var.restart_now
}

output "machines" {
  value = module.site.machines
}

output "stale" {
  value = module.site.stale
}
