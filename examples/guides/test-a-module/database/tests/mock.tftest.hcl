# terraform test: without Ironic.

mock_provider "metal" {
  mock_data "metal_host" {
    defaults = {
      id     = "6f1c2f4e-0000-4000-8000-000000000001"
      macs   = ["52:54:00:0d:b0:01"]
      traits = ["CUSTOM_NVME"]
    }
  }
}

variables {
  environment = "test"
  nodes       = { db-1 = "203.0.113.11/24" }
}

run "network" {
  command = plan

  assert {
    condition     = jsondecode(metal_deployment.db["db-1"].config_drive.network_data).links[0].ethernet_mac_address == "52:54:00:0d:b0:01"
    error_message = "The address must be on the first network card of the node."
  }

  assert {
    condition     = metal_deployment.db["db-1"].config_drive.hostname == "db-1.test.example.com" && !metal_deployment.db["db-1"].protected
    error_message = "A test database must have the host name of its environment, and no protection."
  }
}

run "production_is_protected" {
  command = plan

  variables {
    environment = "production"
  }

  assert {
    condition     = metal_deployment.db["db-1"].protected
    error_message = "A database in production must be protected."
  }
}

run "machines_without_nvme_disks_are_refused" {
  command = plan

  override_data {
    target = data.metal_host.node
    values = { traits = [] }
  }

  expect_failures = [metal_deployment.db]
}
