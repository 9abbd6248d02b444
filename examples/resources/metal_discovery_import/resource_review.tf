locals {
  delivery = { # serial number (or MAC address) = name; csvdecode() reads it from a delivery note just as well
    RK000001 = "r12-slot-01"
    RK000002 = "r12-slot-02"
  }
}

# Only approved machines are taken.
resource "metal_discovery_import" "delivery" {
  name          = "delivery"
  name_template = { prefix = "r12-", hardware_details = "serial-number" }
  include       = keys(local.delivery)
  names         = local.delivery # these win over the template

  discovered_before = plantimestamp()
}

import {
  for_each = metal_discovery_import.delivery.hosts
  to       = metal_host.delivery[each.key]
  id       = each.value.id
}

# No BMC and no target_state: nothing is done to the machines yet.
resource "metal_host" "delivery" {
  for_each = metal_discovery_import.delivery.hosts

  name = each.key
}
