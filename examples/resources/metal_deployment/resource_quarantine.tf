resource "metal_allocation" "worker" {
  name           = "worker-0"
  resource_class = "baremetal"
}

resource "metal_deployment" "worker" {
  node_id       = metal_allocation.worker.node_id
  allocation_id = metal_allocation.worker.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  max_attempts = 2
  on_failure   = "quarantine"
  max_nodes    = 3
}
