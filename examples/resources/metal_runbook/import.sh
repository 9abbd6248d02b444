# UUID of the runbook
terraform import metal_runbook.bmc 5f6c1e0d-3f0a-4c39-8d8b-2b7d1f5f2a77
# Name of the runbook
terraform import metal_runbook.bmc bmc-maintenance
