resource "metal_allocation" "worker" {
  name           = "worker-0"
  resource_class = "baremetal"
}

# Asks the operating system to shut down, so that its services end and leave their cluster.
action "metal_power" "shut_down" {
  config {
    node_id = caller.id
    action  = "soft_off"
  }
}

resource "metal_deployment" "worker" {
  node_id       = metal_allocation.worker.node_id
  allocation_id = metal_allocation.worker.id

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }

  lifecycle {
    action_trigger {
      events     = [before_destroy]
      actions    = [action.metal_power.shut_down]
      on_failure = halt # continue: undeploy it although it did not shut down
    }
  }
}
