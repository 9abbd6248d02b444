list "metal_host" "free" {
  provider = metal

  config {
    resource_class  = "baremetal"
    provision_state = "available"
    name_regex      = "^rack1-"
  }
}
