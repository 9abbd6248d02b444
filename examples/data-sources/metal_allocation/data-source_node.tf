resource "metal_allocation" "build" {
  name           = "build"
  resource_class = "baremetal"
}

data "metal_allocation" "on_node" {
  node = metal_allocation.build.node_name
}

output "reserved_for" {
  value = data.metal_allocation.on_node.name
}
