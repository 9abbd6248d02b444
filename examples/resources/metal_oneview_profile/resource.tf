variable "bmc_password" {
  type      = string
  ephemeral = true # stored neither in the plan nor in the state
}

data "metal_oneview_server_profile_template" "ironic" {
  name = "Ironic BL460c Gen10"
}

data "metal_oneview_server_hardware" "bay1" {
  name = "Encl1, bay 1"
}

locals {
  bay1 = one(values(data.metal_oneview_server_hardware.bay1.servers))
}

# While nothing is deployed, the node has no profile, and OneView users can take the server.
resource "metal_host" "bay1" {
  name = "blade-1"
  bmc = {
    address             = "redfish-virtualmedia://${local.bay1.management_addresses[0]}/redfish/v1/Systems/1"
    username            = "ironic"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  driver_info = {
    server_hardware_uri = data.metal_oneview_server_hardware.bay1.uri
    dynamic_allocation  = true
    deploy_kernel       = "http://images.example.com/ipa.kernel"
    deploy_ramdisk      = "http://images.example.com/ipa.initramfs"
  }
  capabilities = {
    server_hardware_type_uri    = local.bay1.server_hardware_type_uri
    enclosure_group_uri         = local.bay1.enclosure_group_uri
    server_profile_template_uri = data.metal_oneview_server_profile_template.ironic.uri
  }
  ports          = { (local.bay1.macs[0]) = {} }
  resource_class = "bl460c"
  target_state   = "available" # cleans the machine, which erases its disks
}

resource "metal_oneview_profile" "web" {
  node_id = metal_host.bay1.id
}

resource "metal_deployment" "web" {
  node_id = metal_oneview_profile.web.node_id # the profile exists before and after the deployment
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
