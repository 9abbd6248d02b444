variable "bmc_password" {
  type      = string
  sensitive = true
}

resource "metal_inspection_rule" "credentials" {
  description = "Credentials of Dell BMCs"
  sensitive   = true

  conditions = [{
    op   = "matches"
    args = jsonencode({ value = "{inventory[system_vendor][manufacturer]}", regex = "Dell.*" })
  }]
  actions = [{
    op   = "set-attribute"
    args = jsonencode({ path = "/driver_info/redfish_password", value = var.bmc_password })
  }]
}
