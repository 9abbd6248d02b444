terraform {
  required_providers {
    metal = {
      source = "terraform-provider-metal/metal"
    }
  }
}

# Ironic on its own, without authentication.
provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}
