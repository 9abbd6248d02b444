resource "metal_host" "osd" {
  name           = "osd-01"
  bmc            = { address = "redfish-virtualmedia://192.0.2.22/redfish/v1/Systems/1", username = "root", password_wo = var.bmc_password, password_wo_version = 1 }
  ports          = { "52:54:00:02:00:02" = { pxe_enabled = true } }
  resource_class = "storage"
  root_device    = { serial = "S3Z1NX0K100001" }
  target_state   = "available"

  skip_block_devices = [
    { wwn = "0x5002538e40a1b2c1" },
    { wwn = "0x5002538e40a1b2c2" },
    { volume_name = "osd" },
  ]
}
