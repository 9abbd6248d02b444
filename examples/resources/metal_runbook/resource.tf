resource "metal_runbook" "bmc" {
  name            = "bmc-maintenance"
  description     = "Sets the clock of the BMC"
  traits          = ["CUSTOM_RACK1"]
  disable_ramdisk = true

  steps = [
    { interface = "management", step = "set_bmc_clock", args = jsonencode({ target_datetime = "2026-11-01T00:00:00+00:00" }) },
    { interface = "management", step = "clear_job_queue" },
  ]
}
