terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385" # of bifrost
}

locals {
  # An inventory of bifrost as JSON or YAML, or a file of kayobe with kolla_bifrost_servers.
  inventory = yamldecode(file("${path.module}/baremetal.json"))
  free      = toset(["spare-1"]) # what runs nothing

  nodes = {
    for key, node in try(local.inventory.kolla_bifrost_servers, local.inventory) : try(node.name, key) => {
      driver       = node.driver
      info         = merge({}, [for name, value in node.driver_info : try(merge(value, {}), { (name) = value })]...) # "power" and so on are older
      macs         = [for nic in try(node.nics, []) : lower(nic.mac)]
      root_device  = try(node.properties.root_device, null)
      capabilities = try({ for text in split(",", node.properties.capabilities) : split(":", text)[0] => split(":", text)[1] }, null)
    }
  }
}

import {
  for_each = local.nodes
  to       = metal_host.bifrost[each.key]
  id       = each.key
}

resource "metal_host" "bifrost" {
  for_each = local.nodes

  name                   = each.key
  driver                 = each.value.driver
  driver_info            = { for name, value in each.value.info : name => value if !endswith(name, "_password") }
  driver_info_wo         = { for name, value in each.value.info : name => value if endswith(name, "_password") } # in no plan and no state
  driver_info_wo_version = 1
  ports                  = { for mac in each.value.macs : mac => {} }
  root_device            = each.value.root_device
  capabilities           = each.value.capabilities
  target_state           = contains(local.free, each.key) ? "available" : "manageable"
  on_destroy             = "forget"
}

resource "metal_deployment" "bifrost" {
  for_each = setsubtract(keys(local.nodes), local.free)

  node_id    = metal_host.bifrost[each.key].id
  adopt      = true
  on_destroy = "forget"
}
