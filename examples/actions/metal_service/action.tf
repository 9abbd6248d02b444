data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_service.bmc
action "metal_service" "bmc" {
  config {
    node_id = data.metal_host.r1.id
    runbook = "bmc-maintenance"
  }
}

# The same with steps. Ironic does not boot its ramdisk for them, so the machine is not restarted.
action "metal_service" "clock" {
  config {
    node_id         = data.metal_host.r1.id
    disable_ramdisk = true # API 1.108

    steps = [
      { interface = "management", step = "set_bmc_clock", args = jsonencode({ target_datetime = "2026-11-01T00:00:00+00:00" }) },
    ]
  }
}
