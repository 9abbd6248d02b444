# What is wrong with each machine, in words that name its line. The host of the machine cannot be planned then.
locals {
  places = { for name in keys(local.machines) : name => try("csv, line ${local.lines[name][0].line} (${name})", "machines[\"${name}\"]") }
  bmcs   = { for name, machine in local.machines : try(trimsuffix(lower(machine.bmc_address), "/"), "none of ${name}") => local.places[name]... }
  cards = {
    for card in flatten([for name, machine in local.machines : [for mac in machine.macs : { mac = mac, place = local.places[name] }]]) : card.mac => card.place...
  }
  cards_needed = {
    for kind, hardware in var.hardware : kind => max(concat([0], flatten(values(hardware.port_groups)[*].cards), coalesce(hardware.pxe_cards, []))...)
  }
  roles_to_name = [for role, settings in var.roles : role if settings.group == null]
  checked_roles = [for role, settings in var.roles : role if settings.ready_check != null]

  faults = {
    for name, machine in local.machines : name => compact(concat(
      [
        machine.bmc_address == null && machine.driver == null ? "bmc_address is empty, and there is no driver." : "",
        try(length(local.bmcs[trimsuffix(lower(machine.bmc_address), "/")]), 1) == 1 ? "" :
        "bmc_address is in several places: ${try(join("; ", local.bmcs[trimsuffix(lower(machine.bmc_address), "/")]), "")}.",
        machine.hardware == null || contains(keys(var.hardware), coalesce(machine.hardware, "-")) ? "" :
        "hardware is \"${coalesce(machine.hardware, "-")}\". The variable hardware has: ${join(", ", keys(var.hardware))}.",
        local.kinds[name].model == null || can(local.models[local.kinds[name].model]) ? "" :
        "hardware is \"${coalesce(machine.hardware, "-")}\", whose model \"${coalesce(local.kinds[name].model, "-")}\" is not in hardware_lock. It has: ${join(", ", keys(local.models))}.",
        length(machine.macs) >= try(local.cards_needed[machine.hardware], 0) ? "" :
        "macs has ${length(machine.macs)} addresses, and the hardware ${coalesce(machine.hardware, "-")} needs ${try(local.cards_needed[machine.hardware], 0)}.",
        machine.role == null || contains(local.roles_to_name, coalesce(machine.role, "-")) ? "" :
        "role is \"${coalesce(machine.role, "-")}\". A machine can name these roles, which have no group: ${join(", ", local.roles_to_name)}.",
        machine.protected == null || machine.role != null ? "" : "protected has a value, and role is empty. A member of a group has the value of its role.",
        machine.address != null || !contains(local.checked_roles, coalesce(machine.role, "-")) ? "" :
        "address is empty, and the role ${coalesce(machine.role, "-")} has a ready_check.",
      ],
      [for mac in machine.macs : can(regex("^([0-9a-f]{2}:){5}[0-9a-f]{2}$", mac)) ? "" : "macs has \"${mac}\", which is no MAC address."],
      [for mac in machine.macs : length(local.cards[mac]) == 1 ? "" : "${mac} in macs is in several places: ${join("; ", local.cards[mac])}."],
    ))
  }

  # The roles whose group may get a machine without an address, and check the machine there. No more is known before Ironic chooses.
  checked_groups = { for role, settings in var.roles : role => settings.group if settings.group != null && settings.ready_check != null }
  unreachable = {
    for name, machine in local.machines : name => [
      for role, group in local.checked_groups : role
      if machine.address == null && machine.role == null && machine.resource_class == group.resource_class && machine.target_state == "available"
      && machine.maintenance != true && machine.retired != true && length(setsubtract(coalesce(group.traits, []), machine.traits)) == 0
      && contains(coalesce(group.candidate_nodes, [name]), name) && !contains(try(coalesce(group.require.exclude, []), []), name)
    ]
  }
}
