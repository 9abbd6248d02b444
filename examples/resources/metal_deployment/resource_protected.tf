# A machine that no plan may wipe. To wipe it after all, first apply with -var protected=false.
variable "protected" {
  type    = bool
  default = true
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
  on_change = "replace"

  restart_triggers = { kernel = "6.12.9" }
}
