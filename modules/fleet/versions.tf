terraform {
  required_version = ">= 1.11" # ephemeral variables and write-only arguments

  required_providers {
    metal = {
      source  = "terraform-provider-metal/metal"
      version = ">= 0.1"
    }
  }
}
