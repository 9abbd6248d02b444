variable "console_password" {
  type      = string
  ephemeral = true
}

# Any driver that Ironic has enabled. fake-hardware drives no machine, which is good for trying things out.
resource "metal_host" "lab" {
  name                   = "lab-01"
  driver                 = "fake-hardware"
  driver_info            = { terminal_port = "7001" }
  driver_info_wo         = { terminal_password = var.console_password } # write-only: in no plan file and no state
  driver_info_wo_version = 1

  resource_class     = "lab"
  properties         = { cpus = "8", memory_mb = "32768", local_gb = "200", cpu_arch = "x86_64" }
  maintenance        = true
  maintenance_reason = "power supply is being replaced"
}
