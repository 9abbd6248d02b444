# A pool: Ironic chooses which machines run a role, by class and traits. Roles of one class compete for its
# machines, so those with a GPU have a class of their own.

terraform {
  required_version = ">= 1.11"

  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {} # METAL_ENDPOINT in the environment says where Ironic is

variable "join_token" {
  type      = string
  ephemeral = true # in no plan and no state
}

locals {
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}

module "fleet" {
  source = "../.." # github.com/terraform-provider-metal/terraform-provider-metal//modules/fleet?ref=v0.1.0

  machines = {
    for unit in range(1, 5) : format("rack7-%02d", unit) => {
      macs           = [format("52:54:00:70:00:%02x", unit)]
      resource_class = unit < 3 ? "rack7-gpu" : "rack7"
      traits         = unit < 2 ? ["CUSTOM_GPU_LARGE"] : []
    }
  }
  defaults = { driver = "fake-hardware" } # drives no machine; real ones have a bmc_address

  roles = {
    worker = { group = { size = 2, resource_class = "rack7" }, image = local.image, user_data_wo_version = "1" }
    gpu    = { group = { size = 1, resource_class = "rack7-gpu", traits = ["CUSTOM_GPU_LARGE"] }, image = local.image }
  }
  user_data_wo = {
    worker = <<-EOT
      #cloud-config
      write_files:
        - path: /etc/cluster/token
          permissions: "0600"
          content: ${var.join_token}
    EOT
  }
}

output "deployments" {
  value = module.fleet.deployments
}
