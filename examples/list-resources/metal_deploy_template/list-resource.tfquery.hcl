list "metal_deploy_template" "all" {
  provider = metal

  config {
    name_regex = "^CUSTOM_"
  }
}
