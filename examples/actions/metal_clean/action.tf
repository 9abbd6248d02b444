data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_clean.wipe
action "metal_clean" "wipe" {
  config {
    node_id = data.metal_host.r1.id
    erase   = true # the first step erases the disks

    steps = [
      { interface = "deploy", step = "erase_devices" },
      { interface = "bios", step = "factory_reset" },
    ]
  }
}
