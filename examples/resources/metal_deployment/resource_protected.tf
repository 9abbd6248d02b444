variable "protected" {
  type    = bool
  default = true # to wipe the machine, first apply with -var protected=false
}

resource "metal_allocation" "billing" {
  resource_class = "baremetal"
}

resource "metal_deployment" "billing" {
  node_id       = metal_allocation.billing.node_id
  allocation_id = metal_allocation.billing.id

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  protected = var.protected
}
