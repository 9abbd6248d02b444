# Six machines are enrolled and cleaned. Three of them are reserved, and get an image.
# At most two of the six have an operation in progress at once.
#
# The driver fake-hardware drives no machine. `make demo` applies this configuration to a fake Ironic.

terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  poll_interval      = "1s" # fake hardware is quick; the default of 10s suits real machines
  provisioning_limit = { max_concurrent = 2 }
}

variable "image" {
  type    = string
  default = "debian-12"
}

resource "metal_host" "rack" {
  for_each = { for n in range(1, 7) : "node-${n}" => "52:54:00:de:00:0${n}" } # name = MAC address

  name           = each.key
  driver         = "fake-hardware"
  ports          = { (each.value) = {} }
  resource_class = "demo"
  target_state   = "available" # cleans the machine
}

resource "metal_allocation" "web" {
  count = 3

  name           = "demo-web-${count.index}"
  resource_class = "demo"
  depends_on     = [metal_host.rack]
}

resource "metal_deployment" "web" {
  count = 3

  node_id       = metal_allocation.web[count.index].node_id
  allocation_id = metal_allocation.web[count.index].id
  image = {
    url      = "http://images/${var.image}.qcow2"
    checksum = "http://images/SHA256SUMS"
  }
  config_drive = { hostname = "web-${count.index}" }
}
