# Machines and addresses from Nautobot. export.sh saves what its GraphQL API answers.

terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT

variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  nautobot = jsondecode(file("${path.module}/nautobot.json"))

  machines = {
    for device in local.nautobot.devices : coalesce(device.name, "a device without a name, serial number ${device.serial}") => {
      status = device.status.name
      # Nautobot has no field for the address of the BMC: it is the first of an interface for management only.
      bmc_address    = try(flatten([for interface in device.interfaces : interface.ip_addresses[*].address if interface.mgmt_only])[0], null)
      primary_ips    = compact([try(device.primary_ip4.address, null), try(device.primary_ip6.address, null)])
      role           = lower(device.role.name)
      resource_class = replace(lower(device.device_type.model), " ", "-")
      extra = { for key, value in {
        location  = device.location.name
        rack      = try(device.rack.name, null)
        unit      = device.position
        serial    = device.serial
        asset_tag = device.asset_tag
        tags      = join(",", device.tags[*].name)
      } : key => tostring(value) if try(tostring(value), null) != null && value != "" }
      interfaces = { for interface in device.interfaces : interface.name => {
        mac       = contains(["LAG", "VIRTUAL", "BRIDGE"], interface.type) ? null : interface.mac_address
        bond      = try(interface.lag.name, null)
        parent    = try(interface.parent_interface.name, null)
        vlan      = interface.parent_interface == null ? null : try(interface.untagged_vlan.vid, one(interface.tagged_vlans).vid)
        mtu       = interface.mtu
        addresses = [for ip in interface.ip_addresses : ip.address if ip.type == "HOST"]
      } if interface.enabled && !interface.mgmt_only }
    }
  }

  # Nautobot has no field for a gateway and name servers: they are custom fields of prefixes here.
  networks = {
    for prefix in local.nautobot.prefixes : prefix.prefix => {
      gateway = prefix.cf_gateway
      dns     = prefix.cf_dns == null ? [] : split(",", prefix.cf_dns)
    }
  }
}

module "inventory" {
  source = "../.."

  machines           = local.machines
  networks           = local.networks
  bmc_address_format = "redfish-virtualmedia://%s/redfish/v1/Systems/1"
  bond               = { lacp_rate = "fast", xmit_hash_policy = "layer3+4" }
}

module "fleet" {
  source = "../../../fleet"

  machines     = module.inventory.machines
  defaults     = { bmc_username = "terraform" }
  bmc_password = var.bmc_password

  # "ignore": a change of an address or a name in Nautobot does not wipe a machine that runs.
  roles = {
    kubernetes = {
      image     = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
      on_change = "ignore"
    }
  }
}

output "hosts" {
  value = module.fleet.hosts
}

output "left_out" {
  description = "Devices of Nautobot that are no hosts, with their status."
  value       = module.inventory.left_out
}
