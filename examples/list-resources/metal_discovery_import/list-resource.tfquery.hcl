list "metal_discovery_import" "all" {
  provider = metal
}
