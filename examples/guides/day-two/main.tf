terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

variable "rescue_password" {
  type      = string
  ephemeral = true
  default   = null
}

variable "rescue" {
  description = "Version of the rescue password, while the machine is in rescue mode."
  type        = string
  default     = null
}

variable "month" {
  default = "2026-11"
}

variable "kernel" {
  default = "6.12.8"
}

variable "hosts" {
  description = "Addresses of the BMCs."
  type        = map(string)
  default     = { rack1-01 = "192.0.2.11", rack1-02 = "192.0.2.12" }
}

resource "metal_host" "rack1" {
  for_each = var.hosts

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  hardware_interfaces = { rescue = "agent" } # most drivers have no rescue mode by default
  driver_info = {
    rescue_kernel  = "http://images.example.com/ipa.kernel"
    rescue_ramdisk = "http://images.example.com/ipa.initramfs"
  }
  resource_class = "baremetal"
  target_state   = "available"
}

resource "metal_allocation" "web" {
  name           = "web"
  resource_class = "baremetal"
  depends_on     = [metal_host.rack1]
}

resource "metal_deployment" "web" {
  node_id       = metal_allocation.web.node_id
  allocation_id = metal_allocation.web.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  rebuild_triggers = { month = var.month }
  restart_triggers = { kernel = var.kernel }
  power_off_mode   = "graceful" # shut down before a restart
  rescue           = var.rescue == null ? null : { password_wo = var.rescue_password, password_wo_version = var.rescue }
}
