data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_nmi.dump
action "metal_nmi" "dump" {
  config {
    node_id = data.metal_host.r1.id
  }
}
