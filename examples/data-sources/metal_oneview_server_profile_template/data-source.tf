data "metal_oneview_server_profile_template" "ironic" {
  name = "Ironic BL460c Gen10"

  lifecycle {
    postcondition {
      condition     = self.mac_type == "Physical" && self.manages_boot
      error_message = "Ironic needs physical MAC addresses and a managed boot order."
    }
  }
}

output "template_uri" {
  value = data.metal_oneview_server_profile_template.ironic.uri
}
