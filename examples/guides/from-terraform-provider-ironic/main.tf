terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

import {
  to = metal_host.web
  id = "rack1-03" # name or UUID
}

resource "metal_host" "web" {
  name = "rack1-03"
}

import {
  to = metal_allocation.web
  id = "web-1"
}

resource "metal_allocation" "web" {
  name            = "web-1"
  resource_class  = "baremetal"
  candidate_nodes = [metal_host.web.id] # if it is ever made again, on no other machine
}

import {
  to = metal_deployment.web
  id = "rack1-03"
}

resource "metal_deployment" "web" {
  node_id       = metal_allocation.web.node_id
  allocation_id = metal_allocation.web.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
