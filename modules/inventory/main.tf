# No resource: data of an inventory become the variable machines of the module fleet.

locals {
  # Machines that become hosts, and those with a status that the module does not know, which is a fault.
  machines = { for name, machine in var.machines : name => machine if try(var.statuses[lower(machine.status)], "") != "none" }

  # Letters and colons as Ironic writes them. What is no MAC address stays recognisable: it is a fault.
  macs = {
    for name, machine in local.machines : name => {
      for key, interface in machine.interfaces : key => can(regex("^([0-9a-f]{12})$", lower(replace(interface.mac, "/[:. -]/", "")))) ? join(":", regexall("..", lower(replace(interface.mac, "/[:. -]/", "")))) : interface.mac
      if try(trimspace(interface.mac), "") != "" && interface.vlan == null && !contains(local.bonded[name], key)
    }
  }
  bonded = { for name, machine in local.machines : name => distinct(compact([for interface in machine.interfaces : interface.bond])) }

  # Each address of an interface, and the network that it is in.
  addresses = {
    for name, machine in local.machines : name => flatten([
      for key, interface in machine.interfaces : [
        for address in interface.addresses : {
          interface = key
          address   = address
          ip        = local.ip[address]
          subnet    = try(cidrsubnet(address, 0, 0), "")
        }
      ]
    ])
  }
  subnets = { for subnet, network in var.networks : cidrsubnet(subnet, 0, 0) => network }

  # An address without its prefix length, in the one way to write it, so that two spellings are equal.
  ip = {
    for address in distinct(flatten([for machine in local.machines : concat(machine.primary_ips, [for interface in machine.interfaces : interface.addresses]...)])) :
    address => try(cidrhost("${split("/", address)[0]}/${strcontains(address, ":") ? 128 : 32}", 0), address)
  }

  # The addresses whose networks have the default routes and the name servers.
  primary = {
    for name, machine in local.machines : name => [
      for a in local.addresses[name] : a if length(machine.primary_ips) == 0 || contains([for ip in machine.primary_ips : local.ip[ip]], a.ip)
    ]
  }
  gateways = {
    for name, primary in local.primary : name => [
      for a in primary : { interface = a.interface, router = local.subnets[a.subnet].gateway } if try(local.subnets[a.subnet].gateway, null) != null
    ]
  }

  # Interfaces with addresses, what VLANs with addresses are on, and the cards of bonds among them.
  addressed = { for name, addresses in local.addresses : name => toset(addresses[*].interface) }
  links = {
    for name, machine in local.machines : name => setunion(local.addressed[name], toset(compact([
      for key in local.addressed[name] : machine.interfaces[key].vlan == null ? null : machine.interfaces[key].parent
    ])))
  }
  cards = {
    for name, machine in local.machines : name => {
      for key, mac in local.macs[name] : key => mac if contains(local.links[name], key) || try(contains(local.links[name], machine.interfaces[key].bond), false)
    }
  }

  # Names of interfaces as keys of the function network_data.
  keys = { for name, machine in local.machines : name => { for key, _ in machine.interfaces : key => replace(key, "/[^A-Za-z0-9_-]/", "-") } }

  settings = {
    for name, machine in local.machines : name => {
      for key, interface in machine.interfaces : key => {
        mtu       = interface.bond == null ? interface.mtu : null # a card in a bond has the MTU of the bond
        addresses = length(interface.addresses) == 0 ? null : interface.addresses
        gateways  = contains(local.gateways[name][*].interface, key) ? distinct([for g in local.gateways[name] : g.router if g.interface == key]) : null
        routes = length(flatten([for a in local.addresses[name] : try(local.subnets[a.subnet].routes, []) if a.interface == key])) == 0 ? null : [
          for route in distinct(flatten([for a in local.addresses[name] : try(local.subnets[a.subnet].routes, []) if a.interface == key])) : route
        ]
      }
    }
  }
  network_data = {
    for name, machine in local.machines : name => provider::metal::network_data({
      interfaces = { for key, mac in local.cards[name] : local.keys[name][key] => merge(local.settings[name][key], { mac = mac }) }
      bonds = {
        for bond in local.bonded[name] : local.keys[name][bond] => merge(local.settings[name][bond], {
          interfaces       = [for key, _ in local.cards[name] : local.keys[name][key] if machine.interfaces[key].bond == bond]
          mode             = var.bond.mode
          lacp_rate        = var.bond.lacp_rate
          xmit_hash_policy = var.bond.xmit_hash_policy
        }) if contains(local.links[name], bond)
      }
      vlans = {
        for key in local.addressed[name] : local.keys[name][key] => merge(local.settings[name][key], {
          link = local.keys[name][machine.interfaces[key].parent]
          id   = machine.interfaces[key].vlan
        }) if machine.interfaces[key].vlan != null
      }
      dns    = distinct(flatten([for a in local.primary[name] : try(local.subnets[a.subnet].dns, [])]))
      search = distinct(flatten([for a in local.primary[name] : try(local.subnets[a.subnet].search, [])]))
    }) if var.static_addresses && length(local.addressed[name]) > 0 && length(local.faults[name]) == 0
  }

  # Primary addresses in no listed network, if no other of their IP version is in one, and the listed networks that contain them with another prefix length.
  unlisted = {
    for name, primary in local.primary : name => [
      for a in primary : merge(a, { within = [for subnet, _ in local.subnets : subnet if try(cidrsubnet("${a.ip}/${split("/", subnet)[1]}", 0, 0) == subnet, false)] })
      if var.static_addresses && length(local.subnets) > 0 && a.subnet != "" && !contains([for p in primary : strcontains(p.ip, ":") if contains(keys(local.subnets), p.subnet)], strcontains(a.ip, ":"))
    ]
  }

  # What inventories write for no address is none. An address alone has no prefix length, and brackets if it is of IPv6.
  bmcs  = { for name, machine in local.machines : name => try(replace(trimspace(machine.bmc_address), "/^(?i:n/?a|none|null|unknown|tbd|-+)$/", ""), "") }
  hosts = { for name, bmc in local.bmcs : name => split("/", bmc)[0] }
  bmc_addresses = {
    for name, bmc in local.bmcs : name => bmc == "" ? null : strcontains(bmc, "://") ? bmc : (
      format(var.bmc_address_format, length(regexall(":", local.hosts[name])) > 1 && !startswith(bmc, "[") ? "[${local.hosts[name]}]" : local.hosts[name])
    )
  }
  hostnames = { for name, machine in local.machines : name => coalesce(machine.hostname, lower(name)) }
}
