terraform {
  required_version = ">= 1.8" # functions of providers

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

variable "ssh_key" {
  type    = string
  default = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExample admin@example.com"
}

locals {
  servers = {
    web-1 = { node = "rack1-01", bmc = "192.0.2.11", mac = "52:54:00:01:00:01", address = "203.0.113.11" }
    web-2 = { node = "rack1-02", bmc = "192.0.2.12", mac = "52:54:00:01:00:02", address = "203.0.113.12" }
  }
}

resource "metal_host" "server" {
  for_each = local.servers

  name = each.value.node
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports          = { (each.value.mac) = {} }
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_deployment" "server" {
  for_each = local.servers

  node_id = metal_host.server[each.key].id # this machine, because it has the network card
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = {
    hostname  = each.key
    user_data = <<-EOT
      #cloud-config
      users:
        - name: admin
          sudo: ALL=(ALL) NOPASSWD:ALL
          ssh_authorized_keys: ["${var.ssh_key}"]
    EOT
    network_data = provider::metal::network_data({
      interfaces = {
        nic0 = { mac = each.value.mac, addresses = ["${each.value.address}/24"], gateways = ["203.0.113.1"] }
      }
      dns = ["203.0.113.53"]
    })
  }
  power_state = "on"
}

output "inventory" {
  description = "Inventory for Ansible."
  value = yamlencode({
    web = { hosts = { for name, server in local.servers : name => {
      ansible_host = server.address
      ansible_user = "admin"
    } } }
  })
}
