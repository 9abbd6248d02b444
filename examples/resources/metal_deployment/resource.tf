resource "metal_allocation" "web" {
  count = 2

  name           = "web-${count.index}"
  resource_class = "baremetal"
  traits         = ["CUSTOM_NVME"]
}

# An image for the whole disk, and user data for cloud-init.
resource "metal_deployment" "web" {
  count = 2

  node_id       = metal_allocation.web[count.index].node_id
  allocation_id = metal_allocation.web[count.index].id
  image = {
    url         = "http://images.example.com/debian-12.qcow2"
    checksum    = "http://images.example.com/SHA256SUMS"
    disk_format = "qcow2"
  }
  config_drive = {
    hostname  = "web-${count.index}"
    user_data = <<-EOT
      #cloud-config
      packages: [nginx]
    EOT
  }
  power_state = "on"

  timeouts = { create = "45m" }
}
