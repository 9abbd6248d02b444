terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT is in the environment

variable "bmc_password" {
  type      = string
  ephemeral = true # in no plan file and no state
}

locals {
  machines = { # name = address of the BMC
    rack3-01 = "192.0.2.31"
    rack3-02 = "192.0.2.32"
  }
  proxy    = "http://proxy.example.com:3128"            # for all machines
  networks = { rack3-02 = "bond0: {slaves: [e1, e2]}" } # for one machine
  image    = sha256(jsonencode([local.proxy, local.networks]))

  live_iso = {
    for name, address in local.machines : name => {
      url            = "http://images.example.com/rack3-${local.image}.iso"
      shared_content = { proxy = sha256(local.proxy) }
      host_content   = { for key, network in local.networks : "network" => sha256(network) if key == name }
      quiet_period   = "0s" # the image is complete before Terraform boots it
    }
  }
}

# Builds the image. Replace build-iso.sh with your builder.
resource "terraform_data" "iso" {
  triggers_replace = local.image

  provisioner "local-exec" {
    command = "sh ${path.module}/build-iso.sh rack3-${local.image}.iso"
  }
}

resource "metal_host" "rack3" {
  for_each = local.machines

  name = each.key
  bmc = {
    address             = "redfish-virtualmedia://${each.value}/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  target_state = "available" # cleans the machine: it erases its disks
}

resource "metal_deployment" "rack3" {
  for_each   = metal_host.rack3
  depends_on = [terraform_data.iso]

  node_id  = each.value.id
  live_iso = local.live_iso[each.key]
}

data "metal_boot_status" "rack3" {
  live_iso   = local.live_iso
  depends_on = [metal_deployment.rack3]
}

# Machines that run an older image, and what of it is obsolete.
output "older" {
  value = {
    for name in data.metal_boot_status.rack3.older :
    name => data.metal_boot_status.rack3.hosts[name].obsolete
  }
}
