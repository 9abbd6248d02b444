terraform {
  required_version = ">= 1.8" # functions of providers
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  # Written once: the port group in Ironic and the bond of the operating system get the same. The switches must have it, too: LACP.
  bond = { mode = "802.3ad", lacp_rate = "fast", xmit_hash_policy = "layer3+4", miimon = 100 }

  machines = {
    db-1 = { bmc = "192.0.2.21", macs = ["52:54:00:21:00:01", "52:54:00:21:00:02"], address = "203.0.113.31/24" }
    db-2 = { bmc = "192.0.2.22", macs = ["52:54:00:22:00:01", "52:54:00:22:00:02"], address = "203.0.113.32/24" }
  }
}

resource "metal_host" "db" {
  for_each = local.machines

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }

  # What Ironic and Neutron know: these two cards belong together.
  port_groups = {
    bond0 = {
      mode       = local.bond.mode
      mac        = each.value.macs[0]
      properties = { for key, value in local.bond : key => value if key != "mode" }
    }
  }
  ports = { for mac in each.value.macs : mac => { port_group = "bond0", pxe_enabled = mac == each.value.macs[0] } }

  resource_class = "database"
  target_state   = "available"
}

resource "metal_deployment" "db" {
  for_each = local.machines

  node_id = metal_host.db[each.key].id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }

  # What cloud-init configures in the operating system: the bond, and the VLAN on it.
  config_drive = {
    hostname = each.key
    network_data = provider::metal::network_data({
      interfaces = { for i, mac in each.value.macs : "nic${i}" => { mac = mac } }
      bonds      = { bond0 = merge(local.bond, { interfaces = ["nic0", "nic1"], mtu = 9000 }) }
      vlans = {
        data = { link = "bond0", id = 110, mtu = 1500, addresses = [each.value.address], gateways = ["203.0.113.1"] }
      }
      dns = ["203.0.113.53"]
    })
  }
  power_state = "on"
}
