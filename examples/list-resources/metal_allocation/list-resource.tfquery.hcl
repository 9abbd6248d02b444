list "metal_allocation" "active" {
  provider = metal

  config {
    state      = "active"
    name_regex = "^web-"
  }
}
