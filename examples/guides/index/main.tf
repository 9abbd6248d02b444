terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "bmc_password" {
  type      = string
  ephemeral = true # in no plan file and no state
}

resource "metal_host" "rack1_01" {
  name = "rack1-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "available" # cleans the machine: its disks may be erased
}

resource "metal_allocation" "web" {
  name           = "web"
  resource_class = "baremetal"
  depends_on     = [metal_host.rack1_01] # not before the host is available
}

resource "metal_deployment" "web" {
  node_id       = metal_allocation.web.node_id
  allocation_id = metal_allocation.web.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = { hostname = "web", user_data = "#cloud-config\npackages: [nginx]\n" }
}
