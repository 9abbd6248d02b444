data "metal_oneview_server_profile_template" "pool" {
  name = var.server_profile_template

  lifecycle {
    postcondition {
      condition     = self.mac_type == "Physical" && self.manages_boot
      error_message = "The template ${var.server_profile_template} must have physical MAC addresses and manage the boot order: Ironic needs both."
    }
  }
}

# All servers that the template fits, also those in use. With free = true, hosts would come and go with their users.
data "metal_oneview_server_hardware" "pool" {
  server_hardware_type_uri = data.metal_oneview_server_profile_template.pool.server_hardware_type_uri
  enclosure_group_uri      = data.metal_oneview_server_profile_template.pool.enclosure_group_uri
}

locals {
  exclude = [for serial in var.exclude : trimspace(serial)]
  include = var.include == null ? null : [for serial in var.include : trimspace(serial)]

  # An iLO may have several addresses: IPv4 first, and no link-local address, which Ironic cannot reach.
  addresses = {
    for uri, server in data.metal_oneview_server_hardware.pool.servers : uri => [
      for address in concat([for a in server.management_addresses : a if !strcontains(a, ":")], [for a in server.management_addresses : a if strcontains(a, ":")]) :
      address if !startswith(lower(address), "fe80:") && !startswith(address, "169.254.")
    ]
  }
  selected = {
    for uri, server in data.metal_oneview_server_hardware.pool.servers :
    "${var.name_prefix}${lower(server.serial_number)}" => merge(server, { uri = uri, address = try(local.addresses[uri][0], null) })
    if !contains(local.exclude, server.serial_number) && (local.include == null || try(contains(local.include, server.serial_number), false))
  }
  servers = { for name, server in local.selected : name => server if server.address != null }
}

# While nothing is deployed on a host, its server has no profile, and OneView users may take it.
resource "metal_host" "pool" {
  for_each = local.servers

  name = each.key
  bmc = {
    address             = replace(var.bmc.address, "%s", strcontains(each.value.address, ":") ? "[${each.value.address}]" : each.value.address)
    username            = var.bmc.username
    password_wo         = var.bmc_password
    password_wo_version = var.bmc_password_version
    verify_ca           = var.bmc.verify_ca
  }
  driver_info = merge(var.host_settings.driver_info, {
    server_hardware_uri = each.value.uri
    dynamic_allocation  = true
  })
  capabilities = {
    for name, value in {
      server_hardware_type_uri    = each.value.server_hardware_type_uri
      enclosure_group_uri         = each.value.enclosure_group_uri
      server_profile_template_uri = data.metal_oneview_server_profile_template.pool.uri
    } : name => value if value != null
  }
  ports          = { for mac in slice(each.value.macs, 0, min(1, length(each.value.macs))) : mac => {} } # OneView knows none of rack servers
  resource_class = var.host_settings.resource_class
  traits         = var.host_settings.traits
  target_state   = var.host_settings.target_state
  on_failure     = var.host_settings.on_failure
}

resource "metal_allocation" "pool" {
  for_each   = var.deployments
  depends_on = [metal_host.pool] # not before the hosts are available

  name           = each.key
  resource_class = var.host_settings.resource_class
  traits         = each.value.traits
  on_unusable    = "replace" # as long as nothing is deployed: OneView users may take a reserved server
}

# Applied before the deployment, removed after it.
resource "metal_oneview_profile" "pool" {
  for_each = var.deployments

  node_id = metal_allocation.pool[each.key].node_id
}

resource "metal_deployment" "pool" {
  for_each = var.deployments

  node_id       = metal_oneview_profile.pool[each.key].node_id
  allocation_id = metal_allocation.pool[each.key].id
  image         = each.value.image
  config_drive  = { hostname = each.key, user_data = each.value.user_data }
  on_change     = each.value.on_change
  protected     = each.value.protected
}
