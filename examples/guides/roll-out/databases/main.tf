terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "image" {
  default = "debian-12"
}

variable "kernel" {
  default = "6.12.8"
}

locals {
  databases = { # where each of them answers
    db-1 = "198.51.100.11:5432"
    db-2 = "198.51.100.12:5432"
    db-3 = "198.51.100.13:5432"
  }
}

resource "metal_deployment" "db" {
  for_each = local.databases

  node_id = each.key
  image = {
    url      = "http://images.example.com/${var.image}.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  restart_triggers = { kernel = var.kernel }

  ready_check = { tcp = each.value, timeout = "15m" }
  rollout     = { group = "databases", max_unavailable = 1, pause = "1m" }
}
