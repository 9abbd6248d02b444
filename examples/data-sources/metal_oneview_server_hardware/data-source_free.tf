data "metal_oneview_server_profile_template" "ironic" {
  name = "Ironic BL460c Gen10"
}

data "metal_oneview_server_hardware" "free" {
  server_hardware_type_uri = data.metal_oneview_server_profile_template.ironic.server_hardware_type_uri
  free                     = true
}

output "free_blades" {
  value = [for uri in data.metal_oneview_server_hardware.free.uris : data.metal_oneview_server_hardware.free.servers[uri].name]
}
