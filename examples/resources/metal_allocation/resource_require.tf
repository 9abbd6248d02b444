resource "metal_allocation" "cache" {
  name           = "cache"
  resource_class = "baremetal"
  require = {
    min_cpus      = 16
    min_memory_mb = 65536
    min_disk_gb   = 400
    cpu_arch      = "x86_64"
    exclude       = ["rack1-09"]
  }
  wait_for_capacity = "30m" # if all such machines are in use
}
