data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_inspect.again
action "metal_inspect" "again" {
  config {
    node_id = data.metal_host.r1.id
  }
}
