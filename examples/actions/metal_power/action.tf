data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_power.reboot
action "metal_power" "reboot" {
  config {
    node_id = data.metal_host.r1.id
    action  = "reboot"
  }
}

# The change of a configuration file restarts the machine that reads it when it boots.
resource "terraform_data" "boot_config" {
  input = filesha256("boot.cfg")

  lifecycle {
    action_trigger {
      events  = [after_update]
      actions = [action.metal_power.reboot]
    }
  }
}
