data "metal_host" "bios" {
  name    = "rack1-01"
  include = ["bios_settings"]
}

# What bios_settings of metal_host may contain: the present values, and those that the BIOS accepts.
output "bios_settings" {
  value = {
    for name, setting in data.metal_host.bios.bios_settings :
    name => "${coalesce(setting.value, "?")} (${join(", ", coalesce(setting.allowable_values, [coalesce(setting.type, "any")]))})"
    if setting.read_only != true
  }
}

output "hyper_threading" {
  value = [for name, setting in data.metal_host.bios.bios_settings : name if can(regex("(?i)logicalproc|hyper.?thread|smt", name))]
}
