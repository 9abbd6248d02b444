# terraform apply -invoke=action.metal_nmi.dump
action "metal_nmi" "dump" {
  config {
    node_id = metal_host.r1.id
  }
}
