variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "kiosk" {
  name = "rack3-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.31/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  target_state = "available"
}

resource "metal_deployment" "kiosk" {
  node_id = metal_host.kiosk.id
  live_iso = {
    url            = "http://images.example.com/site-v8.iso"
    shared_content = { proxy = "v3" }   # a change restarts no machine
    host_content   = { network = "v1" } # a change restarts this machine
    quiet_period   = "0s"               # an ISO of this name never changes
  }
}
