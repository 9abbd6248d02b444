variable "join_token" {
  type      = string
  ephemeral = true # stored neither in the plan nor in the state
}

resource "metal_deployment" "db" {
  node_id = "rack1-04"

  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "a3f5c1d0e9b84f7261d0c9a8b7e6f5d4c3b2a190807f6e5d4c3b2a1908f7e6d5"
  }
  config_drive = {
    hostname             = "db"
    user_data_wo_version = 1 # raise it when you change user_data_wo: that wipes the root disk
    user_data_wo         = <<-EOT
      #cloud-config
      write_files:
        - path: /etc/cluster/token
          permissions: "0600"
          content: ${var.join_token}
    EOT
  }
}
