data "metal_host" "first" {
  name = "rack1-01"
}

output "first_is" {
  value = "${data.metal_host.first.provision_state}, MAC address ${data.metal_host.first.macs[0]}"
}
