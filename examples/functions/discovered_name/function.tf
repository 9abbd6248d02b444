locals {
  template = { prefix = "string-literal1-", suffix = "-string-literal2", hardware_details = "hostname" }
}

output "one_name" {
  value = provider::metal::discovered_name(local.template, { hostname = "the-host-name" }) # string-literal1-the-host-name-string-literal2
}

# What another template would call the machines that are waiting. Without a usable serial number it is null.
data "metal_discovered_hosts" "new" {
  name_template = { prefix = "r12-", hardware_details = "boot-mac" }
}

output "names_by_serial_number" {
  value = {
    for machine in data.metal_discovered_hosts.new.hosts : machine.proposed_name =>
    try(provider::metal::discovered_name({ prefix = "r12-", hardware_details = "serial-number", style = "dns" }, machine), null)
  }
}
