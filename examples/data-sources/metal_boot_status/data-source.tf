data "metal_boot_status" "rack1" {
  live_iso = {
    for name in ["rack1-01", "rack1-02", "rack1-03", "rack1-04"] : name => {
      url            = "http://images.example.com/rack1.iso"
      version        = "2026-05-02"
      shared_content = { proxy = "http://proxy.example.com:3128" }
    }
  }
}

# Machines that run another image than the wanted one, and whether an apply would restart them.
output "older" {
  value = { for name in data.metal_boot_status.rack1.older : name => data.metal_boot_status.rack1.hosts[name].reason }
}

# Machines that were booted with something that is obsolete now, and what it is.
output "stale" {
  value = { for name in data.metal_boot_status.rack1.stale : name => data.metal_boot_status.rack1.hosts[name].obsolete }
}

output "restart_by_hand" {
  value = data.metal_boot_status.rack1.manual
}
