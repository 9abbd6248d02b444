list "metal_inspection_rule" "all" {
  provider = metal

  config {
    name_regex = "^Rack "
  }
}
