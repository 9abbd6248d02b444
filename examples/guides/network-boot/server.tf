resource "metal_deployment" "ipmi" {
  node_id = metal_host.ipmi.id
  image = {
    url         = "http://images.example.com/debian-12-genericcloud-amd64.raw"
    checksum    = "http://images.example.com/SHA512SUMS"
    disk_format = "raw" # a raw image needs it
  }
  power_state = "on"
}
