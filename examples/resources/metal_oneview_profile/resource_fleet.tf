variable "bmc_password" {
  type      = string
  ephemeral = true
}

data "metal_oneview_server_profile_template" "ironic" {
  name = "Ironic BL460c Gen10"
}

# All servers that the template fits, including those in use. Do not set free = true: Terraform would destroy hosts when users take servers.
data "metal_oneview_server_hardware" "pool" {
  server_hardware_type_uri = data.metal_oneview_server_profile_template.ironic.server_hardware_type_uri
  enclosure_group_uri      = data.metal_oneview_server_profile_template.ironic.enclosure_group_uri
}

resource "metal_host" "pool" {
  for_each = {
    for uri, server in data.metal_oneview_server_hardware.pool.servers :
    lower(server.serial_number) => merge(server, { uri = uri })
    if length(server.management_addresses) > 0 && length(server.macs) > 0 # OneView has not read the others yet
  }

  name = "pool-${each.key}"
  bmc = {
    address             = "redfish-virtualmedia://${each.value.management_addresses[0]}/redfish/v1/Systems/1"
    username            = "ironic"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  driver_info = {
    server_hardware_uri = each.value.uri
    dynamic_allocation  = true
    deploy_kernel       = "http://images.example.com/ipa.kernel"
    deploy_ramdisk      = "http://images.example.com/ipa.initramfs"
  }
  capabilities = {
    server_hardware_type_uri    = each.value.server_hardware_type_uri
    enclosure_group_uri         = each.value.enclosure_group_uri
    server_profile_template_uri = data.metal_oneview_server_profile_template.ironic.uri
  }
  ports          = { (each.value.macs[0]) = {} }
  resource_class = "pool"
  target_state   = "available" # a host whose server a OneView user has waits for it, out of service
  on_failure     = "warn"      # a host that cannot be prepared holds up no other
}

resource "metal_allocation" "app" {
  count = 2

  name           = "app-${count.index}"
  resource_class = "pool"
  on_unusable    = "replace" # a host that metal oneview sync has taken out of service
  depends_on     = [metal_host.pool]
}

resource "metal_oneview_profile" "app" {
  count = 2

  node_id = metal_allocation.app[count.index].node_id
}

resource "metal_deployment" "app" {
  count = 2

  node_id       = metal_oneview_profile.app[count.index].node_id
  allocation_id = metal_allocation.app[count.index].id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
