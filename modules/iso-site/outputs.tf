output "machines" {
  description = "The machines by name: `node_id`, and `restarts`, the number of restarts since the first boot."
  value       = { for name, machine in metal_deployment.machine : name => { node_id = machine.id, restarts = machine.restarts } }
}

output "stale" {
  description = "Machines that run an older ISO, by name: what of it is obsolete, such as `shared.proxy`."
  value       = { for name in data.metal_boot_status.machines.stale : name => data.metal_boot_status.machines.hosts[name].obsolete }
}

output "manual" {
  description = "Machines that a person must restart, because Ironic cannot switch them."
  value       = data.metal_boot_status.machines.manual
}
