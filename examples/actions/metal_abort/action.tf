data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_abort.stop
action "metal_abort" "stop" {
  config {
    node_id = data.metal_host.r1.id
  }
}
