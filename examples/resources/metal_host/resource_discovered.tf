variable "bmc_password" {
  type      = string
  ephemeral = true
}

# A machine that Ironic has discovered is taken over by the MAC address of its port, or by its name: it is not enrolled twice.
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
