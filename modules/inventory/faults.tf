# Why a machine cannot become a host. The module refuses such a machine and does not leave it out: its host would be destroyed.

locals {
  # Who else has a MAC address, a BMC or a host name.
  same_mac      = { for x in flatten([for name, macs in local.macs : [for key, mac in macs : { mac = mac, at = "${name} ${key}" }]]) : x.mac => x.at... }
  same_bmc      = { for name, address in local.bmc_addresses : lower(address) => name... if address != null }
  same_hostname = { for name, hostname in local.hostnames : lower(hostname) => name... }

  faults = {
    for name, machine in local.machines : name => concat(
      compact([
        can(regex("^[A-Za-z0-9._~-]{1,255}$", name)) ? "" : "Ironic accepts letters, digits, \".\", \"_\", \"~\" and \"-\" in a name, at most 255",
        contains(keys(var.statuses), lower(machine.status)) ? "" : "its status ${machine.status} is not in statuses",
        local.bmc_addresses[name] != null ? "" : "it has no bmc_address",
        local.bmc_addresses[name] == null || length(try(local.same_bmc[lower(local.bmc_addresses[name])], [])) < 2 ? "" : "its BMC ${coalesce(machine.bmc_address, "-")} is also that of ${join(", ", setsubtract(local.same_bmc[lower(local.bmc_addresses[name])], [name]))}",
        can(regex("^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$", local.hostnames[name])) ? "" : "${local.hostnames[name]} is not a host name: set hostname",
        length(local.same_hostname[lower(local.hostnames[name])]) < 2 ? "" : "its host name ${local.hostnames[name]} is also that of ${join(", ", setsubtract(local.same_hostname[lower(local.hostnames[name])], [name]))}",
        length(local.macs[name]) > 0 ? "" : "none of its interfaces has a MAC address",
        length(distinct(values(local.keys[name]))) == length(local.keys[name]) ? "" : "two of its interfaces have names that differ only in characters that network data cannot have",
      ]),
      [for key, mac in local.macs[name] : "${mac} of interface ${key} is not a MAC address" if !can(regex("^([0-9a-f]{2}:){5}[0-9a-f]{2}$", mac))],
      [for key, mac in local.macs[name] : "interface ${key} has the MAC address ${mac} of ${join(", ", setsubtract(local.same_mac[mac], ["${name} ${key}"]))}" if length(local.same_mac[mac]) > 1],
      [for key, interface in machine.interfaces : "interface ${key} has addresses, but is neither a bond nor a VLAN, and has no MAC address" if length(interface.addresses) > 0 && interface.vlan == null && !contains(local.bonded[name], key) && !contains(keys(local.macs[name]), key)],
      [for key, interface in machine.interfaces : "interface ${key} is a card of the bond ${coalesce(interface.bond, "-")}, and has addresses" if interface.bond != null && length(interface.addresses) > 0],
      [for key, interface in machine.interfaces : "interface ${key} is a card of the bond ${coalesce(interface.bond, "-")}, which the machine does not have" if interface.bond != null && !contains(keys(machine.interfaces), coalesce(interface.bond, "-"))],
      [for key, interface in machine.interfaces : "interface ${key} is a card of the bond ${coalesce(interface.bond, "-")}, and has no MAC address" if interface.bond != null && !contains(keys(local.macs[name]), key)],
      [
        for key, interface in machine.interfaces : "VLAN ${key} has no parent that is a bond, or a card outside bonds"
        if interface.vlan != null && length(interface.addresses) > 0 && !contains(concat([for card, _ in local.macs[name] : card if machine.interfaces[card].bond == null], local.bonded[name]), coalesce(interface.parent, "-"))
      ],
      [for key, interface in machine.interfaces : "VLAN ${key} has the number ${coalesce(interface.vlan, 0)}, which is not from 1 to 4094" if interface.vlan != null && try(interface.vlan < 1 || interface.vlan > 4094, false)],
      [
        for vlan, keys in { for key, interface in machine.interfaces : "VLAN ${coalesce(interface.vlan, 0)} of ${coalesce(interface.parent, "-")}" => key... if interface.vlan != null && length(interface.addresses) > 0 } :
        "the interfaces ${join(" and ", keys)} are both ${vlan}" if length(keys) > 1
      ],
      [for a in local.addresses[name] : "${a.address} of interface ${a.interface} is not an address with a prefix length" if a.subnet == "" || !strcontains(a.address, "/")],
      [for ip in machine.primary_ips : "its primary address ${ip} is on none of its interfaces" if length(local.addresses[name]) > 0 && !contains(local.addresses[name][*].ip, local.ip[ip])],
      [
        for a in local.unlisted[name] : "its primary address ${a.address} of interface ${a.interface} is in none of networks, so that it has no default route and no name server${length(a.within) == 0 ? "" : ": ${a.within[0]} contains it, with another prefix length"}"
        if length(a.within) > 0 || length(local.unlisted[name]) == length(local.primary[name])
      ],
      [
        for version, separator in { IPv4 = ".", IPv6 = ":" } : "the networks of its primary addresses have several ${version} gateways: name one address of each IP version in primary_ips"
        if length(distinct([for g in local.gateways[name] : g.router if strcontains(g.router, separator) && (separator == ":" || !strcontains(g.router, ":"))])) > 1
      ],
    )
  }
}
