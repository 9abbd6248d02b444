resource "metal_host" "db" {
  name = "rack1-07"
  bmc = {
    address             = "ipmi://10.0.0.17"
    username            = "admin"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  hardware_interfaces = { console = "ipmitool-socat" }
  driver_info         = { ipmi_terminal_port = "8017" } # of the conductor, one for each machine
  console             = "enabled"
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}
