data "metal_hosts" "free" {
  resource_class  = "baremetal"
  provision_state = "available"
  associated      = false
  maintenance     = false
  name_regex      = "^rack1-"
}

output "free_nvme_hosts" {
  value = [for host in data.metal_hosts.free.hosts : host.name if contains(host.traits, "CUSTOM_NVME")]
}
