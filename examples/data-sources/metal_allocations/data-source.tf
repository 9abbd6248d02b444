data "metal_allocations" "in_use" {
  state          = "active"
  resource_class = "baremetal"
}

output "reserved_hosts" {
  value = { for a in data.metal_allocations.in_use.allocations : a.node_name => coalesce(a.name, a.id) }
}
