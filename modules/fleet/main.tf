locals {
  listed = {
    for name, lines in local.lines : name => merge({ for column in local.columns : column => lookup(lines[0].cells, column, null) }, {
      macs         = compact(split(" ", replace(lookup(lines[0].cells, "macs", ""), "/[\\s,;]+/", " ")))
      traits       = try(compact(split(" ", replace(lines[0].cells.traits, "/[\\s,;]+/", " "))), null)
      maintenance  = try(tobool(lower(lines[0].cells.maintenance)), null)
      retired      = try(tobool(lower(lines[0].cells.retired)), null)
      protected    = try(tobool(lower(lines[0].cells.protected)), null)
      extra        = { for column, cell in lines[0].cells : trimprefix(column, "extra.") => cell if startswith(column, "extra.") }
      driver_info  = null
      network_data = null
    })
  }

  machines = {
    for name, machine in merge(var.machines, local.listed) : name => merge(machine, {
      driver         = machine.driver != null ? machine.driver : var.defaults.driver
      driver_info    = machine.driver_info == null ? var.defaults.driver_info : merge(var.defaults.driver_info, machine.driver_info)
      macs           = [for mac in machine.macs : lower(replace(mac, "-", ":"))]
      bmc_username   = machine.bmc_username != null ? machine.bmc_username : var.defaults.bmc_username
      hardware       = machine.hardware != null ? machine.hardware : var.defaults.hardware
      extra          = merge(var.defaults.extra, machine.extra)
      resource_class = coalesce(machine.resource_class, var.defaults.resource_class)
      traits         = machine.traits == null ? var.defaults.traits : machine.traits
      target_state   = coalesce(machine.target_state, var.defaults.target_state)
      address        = machine.address == "" ? null : machine.address
      service        = machine.address == null || machine.address == "" ? null : strcontains(machine.address, ":") ? "[${machine.address}]" : machine.address # without port
    })
  }
  kinds = { # not with try or lookup: one unknown value would make all of them unknown
    for name, machine in local.machines : name => contains(keys(var.hardware), coalesce(machine.hardware, "-")) ? var.hardware[machine.hardware] : local.no_kind
  }
  models = try(jsondecode(var.hardware_lock), {})
  no_kind = {
    port_groups         = {}
    pxe_cards           = null
    bios_settings       = null
    raid                = null
    firmware            = null
    model               = null
    qualification       = null
    boot_mode           = null
    secure_boot         = null
    hardware_changes    = null
    hardware_drift      = null
    hardware_interfaces = null
    capabilities        = null
    root_device         = null
  }

  # Machines that name their role, and members of groups, which Ironic chooses.
  assigned = { for name, machine in local.machines : name => machine if machine.role != null }
  reserved = flatten([
    for role, group in metal_allocation_group.role : [
      for name, member in group.members : { name = name, role = role, allocation = member, node = coalesce(member.node_name, "-") }
    ]
  ])
  members = { # a node that is not in this module has no address
    for member in local.reserved : member.name => merge(member, {
      address = contains(keys(local.machines), member.node) ? local.machines[member.node].address : null
      service = contains(keys(local.machines), member.node) ? local.machines[member.node].service : null
    })
  }
}

resource "metal_host" "machine" {
  for_each = local.machines

  name = each.key
  bmc = each.value.bmc_address == null ? null : {
    address             = each.value.bmc_address
    username            = each.value.bmc_username
    password_wo         = lookup(var.bmc_passwords, coalesce(each.value.bmc_password_key, each.key), var.bmc_password)
    password_wo_version = coalesce(each.value.bmc_password_version, var.bmc_password_version)
    verify_ca           = startswith(each.value.bmc_address, "redfish") ? var.defaults.bmc_verify_ca : null # IPMI has no certificates
  }
  driver              = each.value.bmc_address == null ? each.value.driver : null
  driver_info         = each.value.driver_info
  hardware_interfaces = local.kinds[each.key].hardware_interfaces
  ports = {
    for i, mac in each.value.macs : mac => {
      port_group  = one([for group, bond in local.kinds[each.key].port_groups : group if contains(bond.cards, i + 1)])
      pxe_enabled = local.kinds[each.key].pxe_cards == null ? null : contains(local.kinds[each.key].pxe_cards, i + 1)
    }
  }
  port_groups = length(local.kinds[each.key].port_groups) == 0 ? null : {
    for group, bond in local.kinds[each.key].port_groups : group => {
      mode             = bond.mode
      properties       = bond.properties
      standalone_ports = bond.standalone_ports
    }
  }
  bios_settings    = local.kinds[each.key].bios_settings
  raid             = local.kinds[each.key].raid
  firmware         = local.kinds[each.key].firmware
  hardware_changes = local.kinds[each.key].hardware_changes
  hardware_drift   = local.kinds[each.key].hardware_drift
  expect_hardware  = local.kinds[each.key].model == null ? null : try(local.models[local.kinds[each.key].model], null)
  qualification    = local.kinds[each.key].qualification
  boot_mode        = local.kinds[each.key].boot_mode
  secure_boot      = local.kinds[each.key].secure_boot
  capabilities     = local.kinds[each.key].capabilities
  root_device      = local.kinds[each.key].root_device
  resource_class   = each.value.resource_class
  traits           = each.value.traits
  description      = each.value.description
  extra            = length(each.value.extra) == 0 ? null : each.value.extra
  maintenance      = each.value.maintenance
  retired          = each.value.retired
  automated_clean  = var.defaults.automated_clean
  inspect          = var.defaults.inspect
  target_state     = each.value.target_state
  on_destroy       = var.defaults.on_destroy
  on_failure       = var.defaults.on_failure

  lifecycle {
    precondition {
      condition     = length(local.faults[each.key]) == 0
      error_message = "${local.places[each.key]}: ${join(" ", local.faults[each.key])}"
    }
    precondition { # apart from the faults: the class of a group may be known after apply only
      condition     = length(local.unreachable[each.key]) == 0
      error_message = "${local.places[each.key]}: address is empty, and Ironic may choose the machine for ${join(", ", local.unreachable[each.key])}, whose ready_check needs it. Write the address, or keep the machine out of the group, with another resource_class, candidate_nodes or require.exclude."
    }
    precondition {
      condition     = each.value.bmc_address == null || lookup(var.bmc_passwords, coalesce(each.value.bmc_password_key, each.key), var.bmc_password) != null
      error_message = "${local.places[each.key]}: there is a bmc_address and no password. Set bmc_password, or bmc_passwords[\"${coalesce(each.value.bmc_password_key, each.key)}\"]."
    }
    precondition { # not the password of all machines instead
      condition     = each.value.bmc_password_key == null || can(var.bmc_passwords[each.value.bmc_password_key])
      error_message = "${local.places[each.key]}: bmc_password_key is \"${coalesce(each.value.bmc_password_key, "-")}\", which is not in bmc_passwords."
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
  on_destroy       = var.roles[each.value.role].on_destroy
  max_attempts     = var.roles[each.value.role].max_attempts
  protected        = each.value.protected != null ? each.value.protected : var.roles[each.value.role].protected
  power_state      = var.roles[each.value.role].power_state
  power_off_mode   = var.roles[each.value.role].power_off_mode
  rebuild_triggers = var.roles[each.value.role].rebuild_triggers
  restart_triggers = var.roles[each.value.role].restart_triggers
  ready_check = var.roles[each.value.role].ready_check == null || each.value.service == null ? null : {
    tcp        = "${each.value.service}:${var.roles[each.value.role].ready_check.port}"
    timeout    = var.roles[each.value.role].ready_check.timeout
    stable_for = var.roles[each.value.role].ready_check.stable_for
  }
  rollout = var.roles[each.value.role].rollout
}

# Ironic reserves the members of groups when the hosts are available, and the machines that name their role are reserved.
resource "metal_allocation_group" "role" {
  for_each   = { for role, settings in var.roles : role => settings.group if settings.group != null }
  depends_on = [metal_host.machine, metal_deployment.machine]

  name              = each.key
  size              = each.value.size
  resource_class    = each.value.resource_class
  traits            = each.value.traits
  candidate_nodes   = each.value.candidate_nodes
  require           = each.value.require
  spread_by         = each.value.spread_by
  max_per_domain    = each.value.max_per_domain
  wait_for_capacity = each.value.wait_for_capacity
  replace_members   = each.value.replace_members
}

resource "metal_deployment" "member" {
  for_each = local.members

  node_id       = each.value.allocation.node_id
  allocation_id = each.value.allocation.id
  image         = var.roles[each.value.role].image
  config_drive = {
    hostname             = each.key
    user_data            = var.roles[each.value.role].user_data
    user_data_wo         = var.roles[each.value.role].user_data_wo_version == null ? null : var.user_data_wo[each.value.role]
    user_data_wo_version = var.roles[each.value.role].user_data_wo_version
  }
  on_change        = var.roles[each.value.role].on_change
  on_destroy       = var.roles[each.value.role].on_destroy
  on_failure       = var.roles[each.value.role].on_failure
  max_attempts     = var.roles[each.value.role].max_attempts
  max_nodes        = var.roles[each.value.role].max_nodes
  protected        = var.roles[each.value.role].protected
  power_state      = var.roles[each.value.role].power_state
  power_off_mode   = var.roles[each.value.role].power_off_mode
  rebuild_triggers = var.roles[each.value.role].rebuild_triggers
  restart_triggers = var.roles[each.value.role].restart_triggers
  ready_check = var.roles[each.value.role].ready_check == null ? null : {
    tcp        = "${each.value.service}:${var.roles[each.value.role].ready_check.port}"
    timeout    = var.roles[each.value.role].ready_check.timeout
    stable_for = var.roles[each.value.role].ready_check.stable_for
  }
  rollout = var.roles[each.value.role].rollout

  lifecycle {
    precondition { # the outputs have both by name
      condition     = !contains(keys(local.machines), each.key)
      error_message = "The role ${each.value.role} gives the name ${each.key} to a member, and there is a machine of that name. Rename one of the two."
    }
    precondition {
      condition     = var.roles[each.value.role].ready_check == null || each.value.service != null || !contains(keys(local.machines), each.value.node)
      error_message = "Ironic has reserved ${each.value.node} for ${each.key}. The role ${each.value.role} has a ready_check, and the address of ${each.value.node} is empty."
    }
    precondition {
      condition     = var.roles[each.value.role].ready_check == null || contains(keys(local.machines), each.value.node)
      error_message = "Ironic has reserved ${each.value.node} for ${each.key}. The role ${each.value.role} has a ready_check, and ${each.value.node} is not in csv or machines. Add a line with its address."
    }
  }
}
