list "metal_host" "rack1" {
  provider         = metal
  include_resource = true
  limit            = 1000

  config {
    name_regex = "^rack1-"
  }
}
