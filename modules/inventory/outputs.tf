output "machines" {
  description = "The machines by name, for the variable `machines` of the module fleet."
  value = {
    for name, machine in local.machines : name => {
      bmc_address      = local.bmc_addresses[name]
      bmc_username     = machine.bmc_username
      bmc_password_key = machine.bmc_password_key
      hardware         = machine.hardware
      macs             = values(local.macs[name]) # in the order of the names of the interfaces
      resource_class   = machine.resource_class
      traits           = machine.traits
      role             = machine.role
      hostname         = local.hostnames[name]
      address          = length(machine.primary_ips) == 0 ? null : local.ip[machine.primary_ips[0]]
      network_data     = lookup(local.network_data, name, null)
      description      = machine.description
      maintenance      = var.statuses[lower(machine.status)] == "maintenance" ? true : null
      extra            = machine.extra
    }
  }

  precondition {
    condition     = length(flatten(values(local.faults))) == 0
    error_message = <<-EOT
      Machines of the inventory cannot become hosts:

      ${join("\n", [for name, faults in local.faults : "${name}: ${join("; ", faults)}." if length(faults) > 0])}

      Correct them in the inventory. The module does not leave them out, because their hosts would be destroyed. A machine that has never been a host can have a status that is "none" in statuses.
    EOT
  }

  precondition {
    condition     = length(local.machines) >= var.min_hosts
    error_message = "The inventory has ${length(local.machines)} machines that become hosts, and min_hosts is ${var.min_hosts}. Hosts whose machines it lacks would be destroyed, and what runs on them undeployed."
  }
}

output "left_out" {
  description = "Status of each machine that becomes no host, by name."
  value       = { for name, machine in var.machines : name => machine.status if !contains(keys(local.machines), name) }
}
