# Machines and addresses from NetBox. export.sh saves what its REST API answers.

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
  netbox = { for list in ["devices", "interfaces", "ip-addresses", "prefixes"] : list => jsondecode(file("${path.module}/netbox/${list}.json")) }

  # By the ID of their device, and of their interface. Other statuses than active are those of addresses in DHCP or out of use, and
  # addresses with a role, such as VIPs, are not fixed on an interface.
  interfaces = { for interface in local.netbox["interfaces"] : interface.device.id => interface... if interface.enabled && !interface.mgmt_only }
  addresses = {
    for ip in local.netbox["ip-addresses"] : ip.assigned_object_id => ip.address...
    if ip.assigned_object_type == "dcim.interface" && ip.status.value == "active" && ip.role == null
  }

  machines = {
    for device in local.netbox["devices"] : coalesce(device.name, "device ${device.id}") => {
      status         = device.status.value
      bmc_address    = try(device.oob_ip.address, null)
      primary_ips    = compact([try(device.primary_ip4.address, null), try(device.primary_ip6.address, null)])
      role           = device.role.slug
      resource_class = device.device_type.slug
      extra = { for key, value in {
        netbox_id = device.id
        site      = device.site.slug
        rack      = try(device.rack.name, null)
        unit      = device.position
        serial    = device.serial
        asset_tag = device.asset_tag
        tags      = join(",", device.tags[*].slug)
      } : key => tostring(value) if try(tostring(value), null) != null && value != "" }
      interfaces = { for interface in try(local.interfaces[tostring(device.id)], []) : interface.name => {
        mac       = contains(["lag", "virtual", "bridge"], interface.type.value) ? null : interface.mac_address
        bond      = try(interface.lag.name, null)
        parent    = try(interface.parent.name, null)
        vlan      = interface.parent == null ? null : try(interface.untagged_vlan.vid, one(interface.tagged_vlans).vid)
        mtu       = interface.mtu
        addresses = try(local.addresses[tostring(interface.id)], [])
      } }
    }
  }

  # NetBox has no field for a gateway and name servers: they are custom fields of prefixes here. If several VRFs have one prefix, let the
  # filter of export.sh choose a VRF.
  networks = {
    for prefix in local.netbox["prefixes"] : prefix.prefix => {
      gateway = prefix.custom_fields.gateway
      dns     = prefix.custom_fields.dns == null ? [] : split(",", prefix.custom_fields.dns)
    }
  }
  image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
}

module "inventory" {
  source = "../.."

  machines           = local.machines
  networks           = local.networks
  bmc_address_format = "idrac-virtualmedia://%s/redfish/v1/Systems/System.Embedded.1"
  bond               = { lacp_rate = "fast", xmit_hash_policy = "layer3+4" }
}

module "fleet" {
  source = "../../../fleet"

  machines     = module.inventory.machines
  defaults     = { bmc_username = "terraform" }
  bmc_password = var.bmc_password

  # "ignore": a change of an address or a name in NetBox does not wipe a machine that runs.
  roles = {
    database = { image = local.image, on_change = "ignore" }
    web      = { image = local.image, on_change = "ignore" }
  }
}

output "hosts" {
  value = module.fleet.hosts
}

output "left_out" {
  description = "Devices of NetBox that are no hosts, with their status."
  value       = module.inventory.left_out
}
