terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" } # no provider block: the caller passes one
  }
}

variable "hosts" {
  description = "Address of the BMC, by name of the host."
  type        = map(string)
}

variable "servers" {
  description = "Number of servers to deploy."
  type        = number
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "this" {
  for_each = var.hosts

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_allocation" "server" {
  count = var.servers

  name           = "server-${count.index}"
  resource_class = "baremetal"
  depends_on     = [metal_host.this]
}

resource "metal_deployment" "server" {
  count = var.servers

  node_id       = metal_allocation.server[count.index].node_id
  allocation_id = metal_allocation.server[count.index].id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}

output "servers" {
  value = metal_allocation.server[*].node_name
}
