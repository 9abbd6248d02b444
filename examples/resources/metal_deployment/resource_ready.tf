variable "db_address" {
  type    = string
  default = "198.51.100.11:22"
}

resource "metal_deployment" "db" {
  node_id     = "rack1-04"
  image       = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
  ready_check = { tcp = var.db_address, timeout = "20m" }
}
