# A partition image: Ironic makes the partitions and needs kernel and initial ramdisk beside the image.
resource "metal_deployment" "build" {
  node_id = "rack1-03"
  image = {
    type     = "partition"
    url      = "http://images.example.com/debian-12.img"
    checksum = "http://images.example.com/SHA256SUMS"
    kernel   = "http://images.example.com/debian-12.vmlinuz"
    ramdisk  = "http://images.example.com/debian-12.initrd"
    root_gb  = 40
    swap_mb  = 8192
  }
  capabilities = { boot_option = "local", boot_mode = "uefi" }
  root_device  = { serial = "S4EWNX0R100001" }
  on_change    = "ignore" # a new image waits for terraform apply -replace
  max_attempts = 2
}
