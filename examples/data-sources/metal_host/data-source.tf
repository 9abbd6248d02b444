# Look a host up by name, id, mac, bmc_address or instance_id.
data "metal_host" "first" {
  name = "rack1-01"
}

output "first_is" {
  value = "${data.metal_host.first.provision_state}, ${data.metal_host.first.macs[0]}"
}

# What an inspection found, if there was one.
output "serial_number_of_first" {
  value = try(data.metal_host.first.inventory.serial_number, null)
}
