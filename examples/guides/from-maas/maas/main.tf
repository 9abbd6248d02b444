terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

locals {
  power = jsondecode(file("${path.module}/power.json")) # maas $PROFILE machines power-parameters
  machines = {                                          # maas $PROFILE machines read
    for m in jsondecode(file("${path.module}/machines.json")) : m.hostname => merge(m, local.power[m.system_id])
    if contains(["ipmi", "redfish"], m.power_type)
  }

  bmcs   = { for name, m in local.machines : name => trimprefix(m.power_address, "https://") }
  bmc    = { for name, bmc in local.bmcs : name => can(cidrhost("${bmc}/128", 0)) ? "[${bmc}]" : bmc } # brackets around IPv6
  level  = { for name, m in local.machines : name => try("?privilegelevel=${replace(m.privilege_level, "/^ADMIN$/", "ADMINISTRATOR")}", "") }
  system = { for name, m in local.machines : name => try(m.node_id, "") == "" ? "" : "/redfish/v1/Systems/${m.node_id}" }
}

resource "metal_host" "maas" {
  for_each = local.machines

  name = each.key
  bmc = {
    address             = "${each.value.power_type}://${local.bmc[each.key]}${each.value.power_type == "ipmi" ? local.level[each.key] : local.system[each.key]}"
    username            = each.value.power_user
    password_wo         = each.value.power_pass # in no plan and no state
    password_wo_version = 1
  }
  ports = {
    for i in each.value.interface_set : i.mac_address => { pxe_enabled = try(i.mac_address == each.value.boot_interface.mac_address, null) }
    if i.type == "physical"
  }
  resource_class = each.value.pool.name
  traits         = [for tag in each.value.tag_names : "CUSTOM_${upper(replace(tag, "/[^A-Za-z0-9]/", "_"))}"]
  capabilities   = try({ boot_mode = { uefi = "uefi", pxe = "bios" }[each.value.bios_boot_method] }, null)
  extra          = { zone = each.value.zone.name, maas = each.value.system_id }
  target_state   = "manageable" # "available" cleans the machine
  on_destroy     = "forget"
}

resource "metal_deployment" "maas" {
  for_each = { for name, m in local.machines : name => m if m.status_name == "Deployed" }

  node_id    = metal_host.maas[each.key].id
  adopt      = true
  on_destroy = "forget"
}
