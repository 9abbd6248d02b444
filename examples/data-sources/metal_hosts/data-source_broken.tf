data "metal_hosts" "in_maintenance" {
  maintenance = true
}

data "metal_hosts" "clean_failed" {
  provision_state = "clean failed"
}

output "needs_repair" {
  value = {
    for host in concat(data.metal_hosts.in_maintenance.hosts, data.metal_hosts.clean_failed.hosts) :
    coalesce(host.name, host.id) => coalesce(host.maintenance_reason, host.fault, host.last_error, "no reason given")...
  }
}
