# A machine for the tests, as a rack would have it.

terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

resource "metal_host" "db" {
  name           = "db-1"
  driver         = "fake-hardware"
  ports          = { "52:54:00:0d:b0:01" = {} }
  resource_class = "database"
  traits         = ["CUSTOM_NVME"]
  target_state   = "available"
}
