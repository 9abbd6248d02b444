terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

locals {
  # Pasted from the output "hosts": not read from Ironic at each plan, so that a filter or a typing error there destroys nothing.
  rack1 = {
    rack1-01 = "192.0.2.11"
    rack1-02 = "192.0.2.12"
    rack1-03 = "192.0.2.13"
  }
  servers = { web-1 = "rack1-03" } # allocation = node
}

import {
  for_each = local.rack1
  to       = metal_host.rack1[each.key]
  id       = each.key
}

resource "metal_host" "rack1" {
  for_each = local.rack1

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value}/redfish/v1/Systems/1" # with the scheme that the node has
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "available"
}

import {
  for_each = local.servers
  to       = metal_allocation.server[each.key]
  id       = each.key
}

resource "metal_allocation" "server" {
  for_each = local.servers

  name            = each.key
  resource_class  = "baremetal"
  candidate_nodes = [metal_host.rack1[each.value].id] # if it is ever made again, on no other machine
}

import {
  for_each = local.servers
  to       = metal_deployment.server[each.key]
  id       = each.value
}

resource "metal_deployment" "server" {
  for_each = local.servers

  node_id       = metal_allocation.server[each.key].node_id
  allocation_id = metal_allocation.server[each.key].id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = {
    user_data_wo         = "#cloud-config\npackages: [nginx]\n" # as it was deployed; not in the state
    user_data_wo_version = "1"
  }
}
