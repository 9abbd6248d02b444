resource "metal_allocation_group" "web" {
  name           = "web"
  size           = 2
  resource_class = "baremetal"

  # Another date moves the member to another node. That wipes the machine, and retires its node.
  replace_members = { "web-1" = "2026-11-23" }
}

resource "metal_deployment" "web" {
  for_each = metal_allocation_group.web.members

  node_id       = each.value.node_id
  allocation_id = each.value.id
  on_failure    = "quarantine" # a member whose machine cannot be deployed or rebuilt gets another one

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
