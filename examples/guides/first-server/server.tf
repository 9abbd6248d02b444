variable "ssh_key" {
  description = "Public SSH key of the administrator."
  type        = string
  default     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExample admin@example.com"
}

resource "metal_allocation" "web" {
  name            = "web-1"
  resource_class  = "baremetal"
  candidate_nodes = [metal_host.web.name] # this machine, once it is available
}

resource "metal_deployment" "web" {
  node_id       = metal_allocation.web.node_id
  allocation_id = metal_allocation.web.id
  image = {
    url      = "http://images.example.com/debian-12-genericcloud-amd64.qcow2"
    checksum = "http://images.example.com/SHA512SUMS"
  }
  config_drive = {
    hostname  = "web-1"
    user_data = <<-EOT
      #cloud-config
      users:
        - name: admin
          sudo: ALL=(ALL) NOPASSWD:ALL
          ssh_authorized_keys: ["${var.ssh_key}"]
    EOT
  }
  power_state = "on"
}

output "web" {
  value = "${metal_deployment.web.provision_state} on ${metal_allocation.web.node_name}"
}
