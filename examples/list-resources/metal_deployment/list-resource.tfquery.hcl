list "metal_deployment" "rack1" {
  provider = metal

  config {
    name_regex      = "^rack1-"
    provision_state = "active"
  }
}
