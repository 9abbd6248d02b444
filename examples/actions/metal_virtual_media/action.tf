data "metal_host" "r1" {
  name = "rack1-01"
}

# terraform apply -invoke=action.metal_virtual_media.tools
action "metal_virtual_media" "tools" {
  config {
    node_id   = data.metal_host.r1.id
    image_url = "https://images.example.com/tools.iso"
  }
}

# Empties the drive.
action "metal_virtual_media" "none" {
  config {
    node_id   = data.metal_host.r1.id
    image_url = null
  }
}
