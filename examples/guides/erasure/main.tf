terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_runbook" "erase_nvme" {
  name   = "erase-nvme"
  traits = ["CUSTOM_ERASE_NVME"] # Ironic runs the runbook only on nodes with this trait
  steps = [
    { interface = "deploy", step = "erase_devices_express" },
  ]
}

resource "metal_host" "db" {
  name             = "db-01"
  bmc              = { address = "redfish-virtualmedia://192.0.2.21/redfish/v1/Systems/1", username = "root", password_wo = var.bmc_password, password_wo_version = 1 }
  ports            = { "52:54:00:02:00:01" = { pxe_enabled = true } }
  resource_class   = "baremetal"
  traits           = ["CUSTOM_ERASE_NVME"]
  cleaning_runbook = metal_runbook.erase_nvme.name
  target_state     = "available" # Ironic cleans the machine on the way
}

resource "metal_deployment" "db" {
  node_id       = metal_host.db.id
  instance_name = "customers-db" # in Ironic; Ironic forgets it when the machine is undeployed
  image = {
    url      = "https://images.example.com/debian-12.qcow2"
    checksum = "https://images.example.com/SHA256SUMS"
  }
}

data "metal_host" "db" {
  id      = metal_host.db.id
  include = ["inventory", "cleaning_history"]
}

output "last_erasure" {
  value = data.metal_host.db.last_erasure # null until a run has watched a cleaning
}
