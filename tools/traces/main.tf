terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  provisioning_limit = { max_concurrent = 1 }
}

resource "metal_host" "web" {
  for_each       = toset(["rack1-01", "rack1-02"])
  name           = each.key
  driver         = "fake-hardware"
  resource_class = "baremetal"
  target_state   = "available"

  hardware_interfaces = { deploy = "direct" }
  driver_info         = { deploy_kernel = "http://images.example.com/kernel", deploy_ramdisk = "http://images.example.com/ramdisk" }
}

resource "metal_deployment" "web" {
  for_each = metal_host.web
  node_id  = each.value.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  ready_check = { tcp = "127.0.0.1:22" }
}
