variable "bmc_password" {
  type      = string
  ephemeral = true
}

# Machines that run from an ISO which is built for all of them, and holds the network settings of some. The name of the
# ISO comes from what is built into it. So a plan knows it before it is built, and shows which machines restart: those that get
# other network settings, and no others.
locals {
  machines = {
    rack3-01 = "192.0.2.31"
    rack3-02 = "192.0.2.32"
  }
  proxy    = "http://proxy.example.com:3128"
  networks = { rack3-02 = "bond0: [eno1, eno2]" }
  image    = sha256(jsonencode([local.proxy, local.networks]))
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
  target_state = "available"
}

resource "metal_deployment" "rack3" {
  for_each = metal_host.rack3

  node_id = each.value.id
  live_iso = {
    url            = "http://images.example.com/rack3-${local.image}.iso"
    shared_content = { proxy = sha256(local.proxy) }
    host_content   = { for name, network in local.networks : "network" => sha256(network) if name == each.key }
    quiet_period   = "0s" # the image is complete when it has its name
  }
}
