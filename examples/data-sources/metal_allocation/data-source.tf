resource "metal_allocation" "shared" {
  name           = "shared-0"
  resource_class = "baremetal"
}

# In another configuration: an allocation that exists already, and its node.
data "metal_allocation" "shared" {
  name = metal_allocation.shared.name
}

data "metal_host" "shared" {
  id = data.metal_allocation.shared.node_id
}

output "shared_host" {
  value = data.metal_host.shared.name
}
