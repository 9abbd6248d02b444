# In one configuration:
resource "metal_allocation" "shared" {
  name           = "shared-0"
  resource_class = "baremetal"
}

# In another configuration, with name = "shared-0":
data "metal_allocation" "shared" {
  name = metal_allocation.shared.name
}

data "metal_host" "shared" {
  id = data.metal_allocation.shared.node_id
}

output "shared_host" {
  value = data.metal_host.shared.name
}
