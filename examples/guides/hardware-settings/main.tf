terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "rack1_01" {
  name = "rack1-01"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  resource_class = "baremetal"
  target_state   = "available"

  raid = {
    delete_existing = true # all volumes of the machine, with their data
    volumes = [
      { level = "1", size_gb = "MAX", name = "os", root = true, number_of_physical_disks = 2, disk_type = "ssd" },
    ]
  }
  bios_settings = {
    LogicalProc = "Disabled" # hyper-threading on a Dell
    BootMode    = "Uefi"
  }
  firmware = {
    bios = { url = "https://firmware.example.com/bios-2.19.1.bin", version = "2.19.1" }
    bmc  = { url = "https://firmware.example.com/bmc-7.10.30.bin", version = "7.10.30" }
  }

  hardware_drift = "warn" # or "plan": set what the machine has lost again
  hardware_changes = {
    on_active = "wait" # or "service": restart a deployed machine
  }
}

# Warns while a machine does not have all its settings, and fails no apply.
check "hardware" {
  assert {
    condition     = length(metal_host.rack1_01.pending_changes) == 0
    error_message = "rack1-01 waits for: ${join(", ", metal_host.rack1_01.pending_changes)}."
  }
}
