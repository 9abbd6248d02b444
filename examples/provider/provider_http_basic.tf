variable "ironic_password" {
  type      = string
  sensitive = true
}

provider "metal" {
  endpoint    = "https://ironic.example.com:6385"
  username    = "terraform"
  password    = var.ironic_password
  cacert_file = "ironic-ca.pem"
}
