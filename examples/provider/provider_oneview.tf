variable "oneview_password" {
  type      = string
  sensitive = true
}

# Hardware shared with the users of an HPE OneView appliance.
provider "metal" {
  endpoint = "http://ironic.example.com:6385"
  oneview = {
    endpoint    = "https://oneview.example.com"
    username    = "ironic"
    password    = var.oneview_password # or ONEVIEW_PASSWORD in the environment
    cacert_file = "oneview-ca.pem"
  }
}
