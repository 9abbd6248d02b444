terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

variable "neutron_ports" {
  description = "UUIDs of ports in the network of the system, by the name of the machine."
  type        = map(string)
  default = {
    db-1 = "5b0b3a5e-5c1c-4f0c-9c57-6a3f3f6b0d11"
    db-2 = "0f6f9a53-0c0e-4d59-8f1b-2f7d8a1b7c22"
  }
}

locals {
  servers = {
    db-1 = { node = "rack2-01", bmc = "192.0.2.21", mac = "52:54:00:02:00:01", switch_port = "Ethernet1/1" }
    db-2 = { node = "rack2-02", bmc = "192.0.2.22", mac = "52:54:00:02:00:02", switch_port = "Ethernet1/2" }
  }
}

resource "metal_host" "db" {
  for_each = local.servers

  name = each.value.node
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  hardware_interfaces = { network = "neutron" }
  ports = {
    (each.value.mac) = { local_link_connection = { switch_id = "52:54:00:ff:00:02", port_id = each.value.switch_port, switch_info = "rack2" } }
  }
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_deployment" "db" {
  for_each = local.servers

  node_id = metal_host.db[each.key].id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = { hostname = each.key }
  vifs         = [{ id = var.neutron_ports[each.key], mac = each.value.mac }]
  power_state  = "on"
}
