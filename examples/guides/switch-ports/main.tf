terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  boot_vlan    = 100
  storage_vlan = 200
  tenants      = { blue = { vlan = 110 }, green = { vlan = 120 } }

  machines = {
    blue-1  = { tenant = "blue", unit = 1, boot = "52:54:00:12:01:00", bond = ["52:54:00:12:01:01", "52:54:00:12:01:02"] }
    green-1 = { tenant = "green", unit = 2, boot = "52:54:00:12:02:00", bond = ["52:54:00:12:02:01", "52:54:00:12:02:02"] }
  }

  # Two switches in the rack. The bond has a cable to each of them.
  switches = { a = "52:54:00:aa:00:01", b = "52:54:00:aa:00:02" }
}

resource "metal_host" "rack12" {
  for_each = local.machines

  name = "rack12-${format("%02d", each.value.unit)}"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.${100 + each.value.unit}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  hardware_interfaces = { network = "ironic-networking" }

  ports = merge(
    {
      (each.value.boot) = {
        local_link_connection = { switch_id = local.switches.a, port_id = "Ethernet1/${each.value.unit}", switch_info = "tor-12a" }
        extra_json            = jsonencode({ switchport = { mode = "access", native_vlan = local.boot_vlan } })
      }
    },
    {
      for i, mac in each.value.bond : mac => {
        port_group  = "bond0"
        pxe_enabled = false
        local_link_connection = {
          switch_id   = values(local.switches)[i]
          port_id     = "Ethernet2/${each.value.unit}"
          switch_info = "tor-12${keys(local.switches)[i]}"
        }
        extra_json = jsonencode({
          switchport = {
            mode          = "trunk"
            native_vlan   = 1
            allowed_vlans = [local.tenants[each.value.tenant].vlan, local.storage_vlan]
          }
        })
      }
    },
  )
  port_groups = {
    bond0 = {
      mode             = "802.3ad"
      physical_network = "rack12"
      category         = each.value.tenant
    }
  }

  resource_class = "tenant-${each.value.tenant}"
  target_state   = "available"
}

resource "metal_deployment" "tenant" {
  for_each = local.machines

  node_id = metal_host.rack12[each.key].id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = {
    hostname = each.key
    network_data = jsonencode({
      links = concat(
        [for i, mac in each.value.bond : { id = "nic${i}", type = "phy", ethernet_mac_address = mac }],
        [
          { id = "bond0", type = "bond", bond_mode = "802.3ad", bond_links = ["nic0", "nic1"], ethernet_mac_address = each.value.bond[0] },
          { id = "tenant", type = "vlan", vlan_link = "bond0", vlan_id = local.tenants[each.value.tenant].vlan, vlan_mac_address = each.value.bond[0] },
          { id = "storage", type = "vlan", vlan_link = "bond0", vlan_id = local.storage_vlan, vlan_mac_address = each.value.bond[0] },
        ],
      )
      networks = [
        { id = "tenant", link = "tenant", type = "ipv4_dhcp", network_id = "tenant" },
        { id = "storage", link = "storage", type = "ipv4", network_id = "storage", ip_address = "10.200.0.${each.value.unit}", netmask = "255.255.255.0" },
      ]
      services = []
    })
  }
  power_state = "on"
}
