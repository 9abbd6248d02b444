terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

variable "join_token" {
  type      = string
  ephemeral = true
}

resource "metal_host" "rack1" {
  name = "rack1-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = "2026-11-26" # change it when the password changes
  }
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_deployment" "db" {
  node_id = metal_host.rack1.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = {
    hostname             = "db"
    user_data_wo_version = 1
    user_data_wo         = <<-EOT
      #cloud-config
      runcmd: [[join-cluster, ${var.join_token}]]
    EOT
  }
}
