terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "dhcp_hosts" {
  description = "Directory that dnsmasq reads: its option --dhcp-hostsdir."
  type        = string
  default     = "dhcp-hosts"
}

locals {
  addresses = { app-1 = "203.0.113.21", app-2 = "203.0.113.22" }
}

resource "metal_allocation" "app" {
  for_each = local.addresses

  name           = each.key
  resource_class = "baremetal"
}

locals {
  nodes = { for name, allocation in metal_allocation.app : name => allocation.node_id }
}

data "metal_host" "app" {
  for_each = local.addresses

  id = local.nodes[each.key]
}

resource "terraform_data" "reservation" {
  for_each = local.addresses

  triggers_replace = [data.metal_host.app[each.key].macs[0], each.value]
  provisioner "local-exec" {
    command = "mkdir -p ${var.dhcp_hosts} && echo '${self.triggers_replace[0]},${each.value},${each.key}' > ${var.dhcp_hosts}/${each.key}"
  }
}

resource "metal_deployment" "app" {
  for_each = local.addresses

  node_id       = metal_allocation.app[each.key].node_id
  allocation_id = metal_allocation.app[each.key].id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = { hostname = each.key }
  power_state  = "on"

  depends_on = [terraform_data.reservation] # the address is reserved before the machine asks for it
}

output "app" {
  description = "Address and node of each machine."
  value       = { for name, machine in metal_deployment.app : name => { address = local.addresses[name], node = machine.node_name } }
}
