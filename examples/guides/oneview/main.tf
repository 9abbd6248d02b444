terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

# METAL_ENDPOINT, ONEVIEW_ENDPOINT, ONEVIEW_USERNAME, ONEVIEW_PASSWORD and ONEVIEW_CACERT_FILE are in the environment.
provider "metal" {}

variable "bmc_password" {
  type      = string
  ephemeral = true # in no plan file and no state
}

data "metal_oneview_server_profile_template" "ironic" {
  name = "Ironic BL460c Gen10"
}

data "metal_oneview_server_hardware" "web" {
  name = "Encl1, bay 1"
}

locals {
  server = one(values(data.metal_oneview_server_hardware.web.servers))
}

resource "metal_host" "web" {
  name = "blade-1"
  bmc = {
    address             = "redfish-virtualmedia://${local.server.management_addresses[0]}/redfish/v1/Systems/1"
    username            = "ironic"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  driver_info = {
    server_hardware_uri = data.metal_oneview_server_hardware.web.uri
    dynamic_allocation  = true # the node has a server profile only while it needs one
    deploy_kernel       = "http://images.example.com/ipa.kernel"
    deploy_ramdisk      = "http://images.example.com/ipa.initramfs"
  }
  capabilities = {
    server_profile_template_uri = data.metal_oneview_server_profile_template.ironic.uri
  }
  ports          = { (local.server.macs[0]) = {} }
  resource_class = "bl460c"
  target_state   = "available" # cleans the machine: it erases its disks
}

# Applied for the deployment, removed after it.
resource "metal_oneview_profile" "web" {
  node_id = metal_host.web.id
}

resource "metal_deployment" "web" {
  node_id = metal_oneview_profile.web.node_id # the profile comes first and goes last
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
