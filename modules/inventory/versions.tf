terraform {
  required_version = ">= 1.11" # as the module fleet

  required_providers {
    metal = {
      source  = "terraform-provider-metal/metal"
      version = ">= 0.1"
    }
  }
}
