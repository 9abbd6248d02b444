# What has been switched on and waits. Looking changes nothing.
data "metal_discovered_hosts" "new" {
  name_template = { prefix = "r12-", hardware_details = "serial-number" }
}

output "new_machines" {
  value = [
    for machine in data.metal_discovered_hosts.new.hosts :
    "${machine.proposed_name}: ${coalesce(machine.manufacturer, "?")} ${coalesce(machine.product, "?")}, boots from ${coalesce(machine.boot_mac, "?")}"
  ]
}

output "not_usable" {
  value = data.metal_discovered_hosts.new.pending
}
