import {
  to = metal_runbook.bmc
  id = "bmc-maintenance"
}
