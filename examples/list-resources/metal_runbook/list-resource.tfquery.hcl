list "metal_runbook" "all" {
  provider = metal

  config {
    name_regex = "^firmware-"
  }
}
