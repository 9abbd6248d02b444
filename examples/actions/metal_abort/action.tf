data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_abort.stop
action "metal_abort" "stop" {
  config {
    node_id = data.metal_host.r1.id
  }
}

# Continues an operation that the step hold has paused.
action "metal_abort" "continue" {
  config {
    node_id = data.metal_host.r1.id
    unhold  = true
  }
}
