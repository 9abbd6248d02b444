list "metal_oneview_profile" "all" {
  provider = metal
}
