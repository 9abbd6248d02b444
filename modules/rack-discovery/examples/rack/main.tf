# A rack that names itself: switch it on, wait until Ironic has discovered the machines, apply.

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

module "rack12" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/rack-discovery?ref=v0.1.0

  name      = "r12" # the machines are named r12-SERIALNUMBER
  filter    = { manufacturer = "^Example", bmc_cidr = "198.18.0.0/24" }
  max_hosts = 40

  bmc           = { username = "root" }
  bmc_password  = var.bmc_password                                       # the one that the whole rack was delivered with
  host_settings = { resource_class = "r12", target_state = "available" } # cleans the machines
}

# Every machine of the rack is deployed.
resource "metal_deployment" "rack12" {
  for_each = module.rack12.hosts

  node_id = each.value.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = { hostname = each.key }
}

output "ansible_inventory" {
  value = module.rack12.ansible_inventory
}

output "pending" { # an alert may watch it
  value = module.rack12.pending
}

output "without_bmc" {
  value = module.rack12.without_bmc
}
