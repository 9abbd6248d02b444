variable "console_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "lab" {
  name                   = "lab-01"
  driver                 = "fake-hardware"
  driver_info            = { terminal_port = "7001" }
  driver_info_wo         = { terminal_password = var.console_password } # never stored in a plan or in state
  driver_info_wo_version = 1

  resource_class = "lab"
}
