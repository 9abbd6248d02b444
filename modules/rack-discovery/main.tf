# Names the machines of the rack. The plan knows them.
resource "metal_discovery_import" "rack" {
  name          = var.name
  name_template = merge({ prefix = "${var.name}-", hardware_details = "serial-number" }, { for key, value in var.name_template : key => value if value != null })
  name_style    = var.name_style
  names         = var.names
  filter        = var.filter
  include       = var.include
  exclude       = var.exclude
  max_hosts     = var.max_hosts
  on_collision  = var.on_collision

  discovered_before = plantimestamp() # a machine that appears during the apply waits for the next plan
}

locals {
  staying = {
    for name, machine in metal_discovery_import.rack.hosts : name => machine
    if length(setintersection(var.exclude, compact([machine.serial_number, machine.boot_mac, machine.id]))) == 0
  }
  hosts = { for name, machine in local.staying : name => machine if machine.bmc_address != null || var.power_control != null }
}

# A host takes the discovered node of its name over: it needs no import block, which a module can have with Terraform 1.16 only.
resource "metal_host" "rack" {
  for_each = local.hosts

  name = each.key
  bmc = each.value.bmc_address == null ? null : {
    address             = replace(var.bmc.address, "%s", strcontains(each.value.bmc_address, ":") ? "[${each.value.bmc_address}]" : each.value.bmc_address)
    username            = var.bmc.username
    password_wo         = var.bmc_password
    password_wo_version = var.bmc_password_version
    verify_ca           = var.bmc.verify_ca
  }
  power_control       = each.value.bmc_address == null ? var.power_control : null
  resource_class      = var.host_settings.resource_class
  traits              = var.host_settings.traits
  capabilities        = var.host_settings.capabilities
  root_device         = var.host_settings.root_device
  driver_info         = var.host_settings.driver_info
  hardware_interfaces = var.host_settings.hardware_interfaces
  description         = var.host_settings.description
  target_state        = var.host_settings.target_state
  on_destroy          = var.host_settings.on_destroy
  on_failure          = var.host_settings.on_failure

  lifecycle {
    precondition {
      condition     = each.value.bmc_address == null || var.bmc_password != null
      error_message = "Machine ${each.key} has a BMC at ${coalesce(each.value.bmc_address, "-")}: set bmc_password."
    }
  }
}
