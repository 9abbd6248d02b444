resource "metal_allocation" "web" {
  count = 3

  name           = "web-${count.index}"
  resource_class = "baremetal"
  traits         = ["CUSTOM_NVME"]
  extra          = { team = "web" }
}

output "web_hosts" {
  value = metal_allocation.web[*].node_name
}
