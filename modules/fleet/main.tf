locals {
  columns = ["bmc_address", "bmc_username", "bmc_password_version", "driver", "macs", "resource_class", "traits", "role", "hostname", "address",
  "description", "target_state", "maintenance"]

  # Lines of the CSV: cells without white space around them, and without the empty ones. Spreadsheets write empty lines and TRUE.
  cells = {
    for row in var.csv == null ? [] : csvdecode(trimprefix(var.csv, "\ufeff")) : trimspace(row.name) => {
      for column, cell in row : column => column == "maintenance" ? lower(trimspace(cell)) : trimspace(cell) if trimspace(cell) != ""
    } if trimspace(row.name) != ""
  }
  listed = {
    for name, cells in local.cells : name => merge({ for column in local.columns : column => lookup(cells, column, null) }, {
      macs         = compact(split(" ", lookup(cells, "macs", "")))
      traits       = try(compact(split(" ", cells.traits)), null)
      driver_info  = null
      network_data = null
    })
  }

  machines = {
    for name, machine in merge(var.machines, local.listed) : name => merge(machine, {
      driver         = machine.driver != null ? machine.driver : var.defaults.driver
      driver_info    = machine.driver_info == null ? var.defaults.driver_info : merge(var.defaults.driver_info, machine.driver_info)
      macs           = [for mac in machine.macs : lower(replace(mac, "-", ":"))]
      resource_class = coalesce(machine.resource_class, var.defaults.resource_class)
      traits         = machine.traits == null ? var.defaults.traits : machine.traits
      target_state   = coalesce(machine.target_state, var.defaults.target_state)
    })
  }

  # Machines that name their role, and members that Ironic chooses.
  assigned = { for name, machine in local.machines : name => machine if machine.role != null }
  members = merge([
    for role, settings in var.roles : { for i in range(coalesce(settings.count, 0)) : "${role}-${i}" => role }
  ]...)
}

resource "metal_host" "machine" {
  for_each = local.machines

  name = each.key
  bmc = each.value.bmc_address == null ? null : {
    address             = each.value.bmc_address
    username            = try(coalesce(each.value.bmc_username, var.defaults.bmc_username), null)
    password_wo         = lookup(var.bmc_passwords, each.key, var.bmc_password)
    password_wo_version = coalesce(each.value.bmc_password_version, var.bmc_password_version)
    verify_ca           = startswith(each.value.bmc_address, "redfish") ? var.defaults.bmc_verify_ca : null # IPMI has no certificates
  }
  driver              = each.value.bmc_address == null ? each.value.driver : null
  driver_info         = each.value.driver_info
  hardware_interfaces = var.defaults.hardware_interfaces
  ports               = { for mac in each.value.macs : mac => {} }
  resource_class      = each.value.resource_class
  traits              = each.value.traits
  capabilities        = var.defaults.capabilities
  root_device         = var.defaults.root_device
  description         = each.value.description
  maintenance         = each.value.maintenance
  automated_clean     = var.defaults.automated_clean
  inspect             = var.defaults.inspect
  target_state        = each.value.target_state
  on_destroy          = var.defaults.on_destroy
  on_failure          = var.defaults.on_failure

  lifecycle {
    precondition {
      condition     = each.value.bmc_address != null || each.value.driver != null
      error_message = "Machine ${each.key} needs bmc_address or driver."
    }
    precondition {
      condition     = each.value.bmc_address == null || lookup(var.bmc_passwords, each.key, var.bmc_password) != null
      error_message = "Machine ${each.key} has a bmc_address and no password: set bmc_password, or bmc_passwords[\"${each.key}\"]."
    }
    precondition {
      condition     = each.value.role == null || try(var.roles[each.value.role].count == null, false)
      error_message = "Machine ${each.key} has the role ${coalesce(each.value.role, "-")}, which is not a role without count in roles."
    }
    precondition {
      condition     = each.value.address != null || try(var.roles[each.value.role].ready_check, null) == null
      error_message = "Machine ${each.key} needs an address: its role ${coalesce(each.value.role, "-")} has a ready_check."
    }
  }
}

# A machine that names its role is reserved by its deployment.
resource "metal_deployment" "machine" {
  for_each = local.assigned

  node_id = metal_host.machine[each.key].id
  image   = var.roles[each.value.role].image
  config_drive = {
    hostname             = coalesce(each.value.hostname, each.key)
    user_data            = var.roles[each.value.role].user_data
    user_data_wo         = var.roles[each.value.role].user_data_wo_version == null ? null : var.user_data_wo[each.value.role]
    user_data_wo_version = var.roles[each.value.role].user_data_wo_version
    network_data         = each.value.network_data
  }
  on_change        = var.roles[each.value.role].on_change
  protected        = var.roles[each.value.role].protected
  power_state      = var.roles[each.value.role].power_state
  rebuild_triggers = var.roles[each.value.role].rebuild_triggers
  restart_triggers = var.roles[each.value.role].restart_triggers
  on_destroy       = var.roles[each.value.role].on_destroy
  ready_check = var.roles[each.value.role].ready_check == null || each.value.address == null ? null : {
    tcp        = format(strcontains(each.value.address, ":") ? "[%s]:%d" : "%s:%d", each.value.address, var.roles[each.value.role].ready_check.port)
    timeout    = var.roles[each.value.role].ready_check.timeout
    stable_for = var.roles[each.value.role].ready_check.stable_for
  }
  rollout = var.roles[each.value.role].rollout
}

# Ironic chooses the other members: when the hosts are available, and the machines that name their role are reserved.
resource "metal_allocation" "member" {
  for_each   = local.members
  depends_on = [metal_host.machine, metal_deployment.machine]

  name           = each.key
  resource_class = var.roles[each.value].resource_class
  traits         = var.roles[each.value].traits
}

resource "metal_deployment" "member" {
  for_each = local.members

  node_id       = metal_allocation.member[each.key].node_id
  allocation_id = metal_allocation.member[each.key].id
  image         = var.roles[each.value].image
  config_drive = {
    hostname             = each.key
    user_data            = var.roles[each.value].user_data
    user_data_wo         = var.roles[each.value].user_data_wo_version == null ? null : var.user_data_wo[each.value]
    user_data_wo_version = var.roles[each.value].user_data_wo_version
  }
  on_change        = var.roles[each.value].on_change
  protected        = var.roles[each.value].protected
  power_state      = var.roles[each.value].power_state
  rebuild_triggers = var.roles[each.value].rebuild_triggers
  restart_triggers = var.roles[each.value].restart_triggers
  on_destroy       = var.roles[each.value].on_destroy
  rollout          = var.roles[each.value].rollout
}
