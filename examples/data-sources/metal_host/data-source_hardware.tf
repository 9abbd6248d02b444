data "metal_host" "hardware" {
  name    = "rack1-01"
  include = ["firmware", "neighbors", "validation"]
}

output "firmware_versions" {
  value = { for component, firmware in data.metal_host.hardware.firmware : component => firmware.current_version }
}

# Null if the machine was never inspected.
output "cables" {
  value = try({
    for mac, neighbor in data.metal_host.hardware.neighbors :
    mac => "${coalesce(neighbor.switch_name, neighbor.switch_id)} ${coalesce(neighbor.port_id, "?")}" if neighbor.switch_id != null
  }, {})
}

output "unusable_interfaces" {
  value = { for kind, result in data.metal_host.hardware.validation : kind => result.reason if !result.ok }
}
