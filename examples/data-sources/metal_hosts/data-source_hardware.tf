data "metal_hosts" "all" {
  resource_class = "baremetal"
}

# One request for all hosts: the list has what these outputs need.
output "not_healthy" {
  value = { for host in data.metal_hosts.all.hosts : coalesce(host.name, host.id) => host.health if !contains(["OK", "unknown"], coalesce(host.health, "unknown")) }
}

output "without_secure_boot" {
  value = [for host in data.metal_hosts.all.hosts : coalesce(host.name, host.id) if host.secure_boot == false]
}

output "raid_levels" {
  value = { for host in data.metal_hosts.all.hosts : coalesce(host.name, host.id) => host.raid.volumes[*].level if host.raid != null }
}
