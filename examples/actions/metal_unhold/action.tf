data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_unhold.continue
action "metal_unhold" "continue" {
  config {
    node_id = data.metal_host.r1.id
  }
}
