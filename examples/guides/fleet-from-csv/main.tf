terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_passwords" {
  description = "Password of the BMCs, by rack."
  type        = map(string)
  ephemeral   = true # in no plan file and no state
}

locals {
  hosts = { for host in csvdecode(file("${path.module}/hosts.csv")) : host.name => host }

  # Raise the number of a rack when its password has changed.
  password_versions = { rack1 = 1, rack2 = 1 }

  roles = {
    web = { image = "debian-12-web.qcow2", user_data = "#cloud-config\npackages: [nginx]\n" }
    db  = { image = "debian-12-db.qcow2", user_data = "#cloud-config\npackages: [postgresql]\n" }
  }
  servers = { for name, host in local.hosts : name => host if host.role != "" }
}

resource "metal_host" "fleet" {
  for_each = local.hosts

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_passwords[each.value.rack]
    password_wo_version = local.password_versions[each.value.rack]
  }
  ports          = { (each.value.mac) = {} }
  resource_class = each.value.class
  extra          = { rack = each.value.rack }
  target_state   = "available"
}

resource "metal_deployment" "server" {
  for_each = local.servers

  node_id = metal_host.fleet[each.key].id # this machine
  image = {
    url      = "http://images.example.com/${local.roles[each.value.role].image}"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = {
    hostname  = each.value.hostname # not each.key: a new name of the host would rebuild the machine
    user_data = local.roles[each.value.role].user_data
  }
}
