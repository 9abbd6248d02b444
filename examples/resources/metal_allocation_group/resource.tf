resource "metal_allocation_group" "k8s" {
  name           = "k8s"
  size           = 3 # members k8s-0, k8s-1, k8s-2
  resource_class = "baremetal"
  traits         = ["CUSTOM_RACK1"]
}

resource "metal_deployment" "k8s" {
  for_each = metal_allocation_group.k8s.members

  node_id       = each.value.node_id
  allocation_id = each.value.id

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = { hostname = each.key }
}
