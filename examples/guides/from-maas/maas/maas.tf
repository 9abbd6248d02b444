# Reads the machines of MAAS and their power parameters, and writes the addresses of BMCs as the provider reads them.
locals {
  power = jsondecode(file("${path.module}/power.json")) # maas $PROFILE machines power-parameters
  machines = {                                          # maas $PROFILE machines read
    for m in jsondecode(file("${path.module}/machines.json")) : m.hostname => merge(m, local.power[m.system_id])
    if contains(["ipmi", "redfish"], m.power_type) && can(local.power[m.system_id].power_address)
  }

  bmcs   = { for name, m in local.machines : name => trimsuffix(replace(m.power_address, "/^https?:[/][/]/", ""), "/") }
  bmc    = { for name, bmc in local.bmcs : name => can(cidrhost("${bmc}/128", 0)) ? "[${bmc}]" : bmc } # brackets around IPv6
  level  = { for name, m in local.machines : name => try("?privilegelevel=${replace(m.privilege_level, "/^ADMIN$/", "ADMINISTRATOR")}", "") }
  system = { for name, m in local.machines : name => try(m.node_id, "") == "" ? "" : "/redfish/v1/Systems/${m.node_id}" }
  addresses = {
    for name, m in local.machines : name => "${m.power_type}${startswith(m.power_address, "http://") ? "+http" : ""}://${local.bmc[name]}${m.power_type == "ipmi" ? local.level[name] : local.system[name]}"
  }

  ports = {
    for name, m in local.machines : name => {
      for i in m.interface_set : i.mac_address => { pxe_enabled = try(i.mac_address == m.boot_interface.mac_address, null) } if i.type == "physical"
    }
  }
  capabilities = { for name, m in local.machines : name => try({ boot_mode = { uefi = "uefi", pxe = "bios" }[m.bios_boot_method] }, null) }
  traits       = { for name, m in local.machines : name => [for tag in m.tag_names : "CUSTOM_${upper(replace(tag, "/[^A-Za-z0-9]/", "_"))}"] }
}
