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
  tree = "http://mirror.example.com/rocky/9/BaseOS/x86_64/os/" # ends in a slash
  machines = {
    installed = { bmc = "192.0.2.11", mac = "52:54:00:00:00:11" }
    container = { bmc = "192.0.2.12", mac = "52:54:00:00:00:12" }
    appliance = { bmc = "192.0.2.13", mac = "52:54:00:00:00:13" }
  }
}

resource "metal_host" "rack" {
  for_each = local.machines
  name     = each.key
  bmc = {
    address             = "redfish://${each.value.bmc}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports               = { (each.value.mac) = { pxe_enabled = true } }
  hardware_interfaces = { boot = "ipxe" }
  target_state        = "available"
}

# Boots the installer of a distribution, which follows a kickstart file.
resource "metal_deployment" "installed" {
  node_id = metal_host.rack["installed"].id
  image   = { url = local.tree }
  instance_info = {
    deploy_interface = "anaconda"
    kernel           = "${local.tree}images/pxeboot/vmlinuz"
    ramdisk          = "${local.tree}images/pxeboot/initrd.img"
    ks_template      = "http://images.example.com/server.ks.template"
  }
}

# Installs a bootable container.
resource "metal_deployment" "container" {
  node_id       = metal_host.rack["container"].id
  image         = { url = "oci://quay.io/centos-bootc/centos-bootc:stream9" }
  instance_info = { deploy_interface = "bootc" }
}

# Runs a deploy step of your own ramdisk, which writes the disk.
resource "metal_deployment" "appliance" {
  node_id       = metal_host.rack["appliance"].id
  image         = { url = "http://images.example.com/appliance.img" }
  instance_info = { deploy_interface = "custom-agent" }
  deploy_steps = [
    { interface = "deploy", step = "install_appliance", args = jsonencode({ edition = "core" }), priority = 80 },
  ]
}
