locals {
  delivery = { # serial number or MAC address = name
    RK000001 = "r12-slot-01"
    RK000002 = "r12-slot-02"
  }
}

resource "metal_discovery_import" "delivery" {
  name          = "delivery"
  name_template = { prefix = "r12-", hardware_details = "serial-number" }
  include       = keys(local.delivery)
  names         = local.delivery

  discovered_before = plantimestamp()
}

import {
  for_each = metal_discovery_import.delivery.hosts
  to       = metal_host.delivery[each.key]
  id       = each.value.id
}

# Without bmc and target_state, the machines do not change.
resource "metal_host" "delivery" {
  for_each = metal_discovery_import.delivery.hosts

  name = each.key
}
