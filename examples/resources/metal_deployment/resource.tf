resource "metal_allocation" "web" {
  count = 2

  name           = "web-${count.index}"
  resource_class = "baremetal"
}

resource "metal_deployment" "web" {
  count = 2

  node_id       = metal_allocation.web[count.index].node_id
  allocation_id = metal_allocation.web[count.index].id

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
  config_drive = {
    hostname  = "web-${count.index}"
    user_data = <<-EOT
      #cloud-config
      ssh_authorized_keys:
        - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleKeyOfTheOperators0000000000000000 ops@example.com
    EOT
  }
}
