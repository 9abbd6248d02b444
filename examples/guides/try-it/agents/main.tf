terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {     # METAL_ENDPOINT is in the environment
  poll_interval = "1s" # a fake is quick; the default of 10s suits real machines
}

resource "metal_discovery_import" "rack12" {
  name              = "rack12"
  name_template     = { prefix = "r12-", hardware_details = "serial-number" }
  discovered_before = plantimestamp()
}

import {
  for_each = metal_discovery_import.rack12.hosts
  to       = metal_host.rack12[each.key]
  id       = each.value.id
}

resource "metal_host" "rack12" {
  for_each = metal_discovery_import.rack12.hosts

  name           = each.key
  power_control  = "agent" # no BMC credentials: Ironic works through the agent on the machine
  resource_class = "baremetal"
  target_state   = "available" # cleans the machine
  on_failure     = "warn"      # a machine whose agent does not answer holds up no other
  on_destroy     = "forget"    # leaves a deployed machine in Ironic
}

resource "metal_deployment" "rack12" {
  for_each = metal_host.rack12

  node_id = each.value.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  on_destroy = "forget" # undeploying needs credentials
}
