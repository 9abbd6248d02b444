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

# A step in place of a runbook. This one needs no ramdisk; it restarts the machine.
action "metal_service" "bios" {
  config {
    node_id         = data.metal_host.r1.id
    disable_ramdisk = true # API 1.108

    steps = [{ interface = "bios", step = "factory_reset" }]
  }
}
