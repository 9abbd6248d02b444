# Look a host up by name, id, mac, bmc_address or instance_uuid.
data "metal_host" "first" {
  name = "rack1-01"
}

output "first_is" {
  value = "${data.metal_host.first.provision_state}, ${data.metal_host.first.macs[0]}"
}
