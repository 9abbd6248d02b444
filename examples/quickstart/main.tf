# Enrolls two hosts, reserves both by class and trait, and deploys an image with user data on them.
#
#   METAL_ENDPOINT=http://localhost:6385 terraform apply
#
# The driver fake-hardware drives no machine. So this may run on any Ironic that has the driver enabled.

terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  poll_interval = "1s" # fake hardware is quick; the default of 10s suits real machines
}

locals {
  hosts = { # name = MAC address
    quickstart-1 = "52:54:00:71:00:01"
    quickstart-2 = "52:54:00:71:00:02"
  }
}

resource "metal_host" "fleet" {
  for_each = local.hosts

  name           = each.key
  driver         = "fake-hardware"
  ports          = { (each.value) = { pxe_enabled = true } }
  resource_class = "quickstart"
  traits         = ["CUSTOM_NVME"]
  target_state   = "available" # cleans the machine
}

resource "metal_allocation" "web" {
  count = 2

  name           = "quickstart-web-${count.index}"
  resource_class = "quickstart"
  traits         = ["CUSTOM_NVME"]

  depends_on = [metal_host.fleet] # reserve nodes only after all hosts are available
}

resource "metal_deployment" "web" {
  count = 2

  node_id       = metal_allocation.web[count.index].node_id
  allocation_id = metal_allocation.web[count.index].id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = {
    hostname  = "web-${count.index}"
    user_data = <<-EOT
      #cloud-config
      packages: [nginx]
    EOT
  }
  power_state = "on"
}
