variable "join_token" {
  type      = string
  ephemeral = true # not stored
}

resource "metal_deployment" "db" {
  node_id = "rack1-04"

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "a3f5c1d0e9b84f7261d0c9a8b7e6f5d4c3b2a190807f6e5d4c3b2a1908f7e6d5"
  }
  config_drive = {
    hostname             = "db"
    user_data_wo_version = 1 # change it with user_data_wo: that wipes the root disk
    user_data_wo         = <<-EOT
      #cloud-config
      runcmd: [[join-cluster, ${var.join_token}]]
    EOT
  }
}
