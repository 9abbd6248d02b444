# terraform apply -invoke=action.metal_abort.stop
action "metal_abort" "stop" {
  config {
    node_id = metal_host.r1.id
  }
}

# Continues an operation that the step hold has paused.
action "metal_abort" "continue" {
  config {
    node_id = metal_host.r1.id
    unhold  = true
  }
}
