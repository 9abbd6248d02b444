terraform {
  required_version = ">= 1.8" # functions of providers

  required_providers {
    metal = {
      source  = "terraform-provider-metal/metal"
      version = ">= 0.1"
    }
  }
}

variable "environment" {
  type = string
}

variable "nodes" {
  description = "Address of each database, by the name of its node."
  type        = map(string)
}

variable "image" {
  type    = string
  default = "http://images.example.com/debian-12.qcow2"
}

data "metal_host" "node" {
  for_each = var.nodes

  name = each.key
}

resource "metal_deployment" "db" {
  for_each = var.nodes

  node_id   = data.metal_host.node[each.key].id
  image     = { url = var.image, checksum = "http://images.example.com/SHA256SUMS" }
  protected = var.environment == "production"
  config_drive = {
    hostname = "${each.key}.${var.environment}.example.com"
    network_data = provider::metal::network_data({
      interfaces = {
        nic0 = {
          mac       = data.metal_host.node[each.key].macs[0]
          addresses = [each.value]
          gateways  = [cidrhost(each.value, 1)]
        }
      }
    })
  }

  lifecycle {
    precondition {
      condition     = contains(data.metal_host.node[each.key].traits, "CUSTOM_NVME")
      error_message = "${each.key} has no NVMe disks."
    }
  }
}

output "databases" {
  value = { for name, db in metal_deployment.db : name => { id = db.id, hostname = db.config_drive.hostname } }
}
