# Machines that Ironic has discovered and that have no name yet.
data "metal_discovered_hosts" "new" {
  name_template = { prefix = "r12-", hardware_details = "serial-number" }
}

output "new_machines" {
  value = {
    for machine in data.metal_discovered_hosts.new.hosts : machine.proposed_name => {
      model    = machine.product
      boot_mac = machine.boot_mac
    }
  }
}

# Machines that cannot get a name, with the reason.
output "not_usable" {
  value = data.metal_discovered_hosts.new.pending
}
