variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_deploy_template" "secure" {
  name  = "CUSTOM_SECURE_BIOS"
  steps = [{ interface = "bios", step = "apply_configuration", priority = 150, args = jsonencode({ settings = [{ name = "SecureBoot", value = "Enabled" }] }) }]
}

resource "metal_host" "db" {
  name = "db-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.51/redfish/v1/Systems/1"
    username            = "terraform"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "db"
  traits         = [metal_deploy_template.secure.name] # the machine may be deployed with the template
  target_state   = "available"
}

resource "metal_deployment" "db" {
  node_id = metal_host.db.id
  traits  = [metal_deploy_template.secure.name] # this deployment runs it
  image = {
    url      = "https://images.example.com/debian-12.qcow2"
    checksum = "https://images.example.com/SHA256SUMS"
  }
}
