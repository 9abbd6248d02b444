# terraform apply -invoke=action.metal_inspect.again
action "metal_inspect" "again" {
  config {
    node_id = metal_host.r1.id
  }
}
