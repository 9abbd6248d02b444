variable "bmc_password" {
  type      = string
  ephemeral = true
}

variable "removed" {
  description = "Serial numbers of machines to take out of service."
  type        = set(string)
  default     = []
}

resource "metal_discovery_import" "workers" {
  name          = "workers"
  name_template = { prefix = "worker-", hardware_details = "serial-number" }
  name_style    = "dns" # names are host names, too
  filter        = { product = "^Rack One$", bmc_cidr = "198.18.0.0/24" }
  exclude       = var.removed

  discovered_before = plantimestamp()
}

locals {
  workers = {
    for name, machine in metal_discovery_import.workers.hosts : name => machine
    if machine.bmc_address != null && !contains(var.removed, machine.serial_number)
  }
}

import {
  for_each = local.workers
  to       = metal_host.workers[each.key]
  id       = each.value.id
}

resource "metal_host" "workers" {
  for_each = local.workers

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value.bmc_address}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "worker"
  target_state   = "available" # cleans the machine, which erases its disks
}

# Deploys every machine.
resource "metal_deployment" "workers" {
  for_each = metal_host.workers

  node_id = each.value.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = { hostname = each.key }
}
