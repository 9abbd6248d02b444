terraform {
  required_version = ">= 1.8" # functions of providers
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

# Two network cards of each machine are cabled to two switches, as one bond. The ports of the switches are trunks with two VLANs.
locals {
  machines = {
    web-1 = { bmc = "192.0.2.11", macs = ["52:54:00:20:00:01", "52:54:00:20:01:01"], host = 21 }
    web-2 = { bmc = "192.0.2.12", macs = ["52:54:00:20:00:02", "52:54:00:20:01:02"], host = 22 }
  }
  network = { for name, machine in local.machines : name => provider::metal::network_data({
    interfaces = {
      nic0 = { mac = machine.macs[0] }
      nic1 = { mac = machine.macs[1] }
    }
    bonds = {
      bond0 = { interfaces = ["nic0", "nic1"], mode = "802.3ad", lacp_rate = "fast", xmit_hash_policy = "layer3+4", mtu = 9000 }
    }
    vlans = {
      public = {
        link      = "bond0"
        id        = 110
        mtu       = 1500
        addresses = ["203.0.113.${machine.host}/24", "2001:db8:110::${machine.host}/64"]
        gateways  = ["203.0.113.1", "2001:db8:110::1"]
      }
      storage = {
        link      = "bond0"
        id        = 120
        addresses = ["198.51.100.${machine.host}/24"]
        routes    = [{ to = "198.18.0.0/16", via = "198.51.100.1" }]
      }
    }
    dns    = ["203.0.113.53", "2001:db8:110::53"]
    search = ["example.com"]
  }) }
}

resource "metal_host" "web" {
  for_each = local.machines

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports          = { for mac in each.value.macs : mac => {} }
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_deployment" "web" {
  for_each = local.machines

  node_id = metal_host.web[each.key].id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = {
    hostname     = each.key
    network_data = local.network[each.key]
  }
  power_state = "on"
}
