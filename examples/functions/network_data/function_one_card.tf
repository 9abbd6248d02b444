terraform {
  required_version = ">= 1.8"
}

data "metal_host" "first" {
  name = "rack1-01"
}

resource "metal_deployment" "first" {
  node_id = data.metal_host.first.id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = {
    hostname = "first"
    network_data = provider::metal::network_data({
      interfaces = {
        nic0 = { mac = data.metal_host.first.macs[0], addresses = ["203.0.113.11/24"], gateways = ["203.0.113.1"] }
      }
      dns = ["203.0.113.53"]
    })
  }
}
