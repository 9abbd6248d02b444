terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

variable "bmc_password" {
  type      = string
  ephemeral = true
}

resource "metal_host" "rack1_12" {
  name = "rack1-12"
  bmc = {
    address             = "redfish-virtualmedia://192.0.2.12/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports = {
    "52:54:00:aa:01:12" = {}
    "52:54:00:aa:01:13" = { pxe_enabled = false }
  }
  resource_class  = "baremetal"
  target_state    = "available"
  inspect         = true
  expect_hardware = jsondecode(file("${path.module}/hardware.lock.json"))["Rack One"]

  qualification = {
    steps = [
      { interface = "deploy", step = "burnin_cpu" },
      { interface = "deploy", step = "burnin_memory" },
      { interface = "deploy", step = "burnin_disk" }, # erases all disks
    ]
    parameters = jsonencode({
      agent_burnin_cpu_timeout      = 3600 # seconds
      agent_burnin_vm_timeout       = 3600
      agent_burnin_fio_disk_runtime = 3600
    })
    valid_for = "90d"
  }
}
