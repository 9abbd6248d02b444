variable "bmc_password" {
  type      = string
  ephemeral = true
}

# Ironic has discovered a machine with this MAC address.
resource "metal_host" "rack2_03" {
  name = "rack2-03"
  bmc = {
    address             = "redfish-virtualmedia://198.18.0.3/redfish/v1/Systems/1"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports = { "52:55:00:00:03:00" = {} }
}
