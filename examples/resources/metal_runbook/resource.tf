resource "metal_runbook" "bmc" {
  name        = "bmc-maintenance"
  description = "Updates the firmware of the BMC"
  traits      = ["CUSTOM_RACK1"]

  steps = [
    { interface = "firmware", step = "update", args = jsonencode({ settings = [{ component = "bmc", url = "https://firmware.example.com/bmc-7.10.30.bin" }] }) },
  ]
}
