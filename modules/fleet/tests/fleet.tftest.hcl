# Each run calls the module through an example, as a root module does. METAL_ENDPOINT must name an Ironic for tests: a fake, for
# example, because the machines of the examples do not exist.

run "csv" {
  module {
    source = "./examples/csv"
  }

  variables {
    bmc_password = "secret"
  }

  assert {
    condition     = keys(output.hosts) == ["rack1-01", "rack1-02", "rack1-03", "rack1-04"] && alltrue([for host in output.hosts : can(regex("^[0-9a-f-]{36}$", host.id))])
    error_message = "Each line of the CSV must become a host."
  }

  assert {
    condition     = keys(output.ansible_inventory.all.children.web.hosts) == ["rack1-01", "rack1-02"] && output.ansible_inventory.all.children.db.hosts["rack1-03"].ansible_host == "198.51.100.13"
    error_message = "Machines that name a role must run it, and the inventory must have their addresses."
  }
}

run "roles" {
  module {
    source = "./examples/roles"
  }

  variables {
    join_token = "secret"
  }

  assert {
    condition     = keys(output.deployments) == ["gpu-0", "worker-0", "worker-1"] && length(distinct(values(output.deployments)[*].node_id)) == 3
    error_message = "Each member of a role must get a machine of its own."
  }

  assert {
    condition     = output.deployments["gpu-0"].node == "rack7-01"
    error_message = "A member must get a machine with the traits of its role."
  }
}

run "an_unknown_column_is_refused" {
  command = plan

  variables {
    csv = "name,bcm_address\nrack1-01,192.0.2.11\n"
  }

  expect_failures = [var.csv]
}

run "a_spreadsheet" {
  command = plan

  variables {
    csv      = "\ufeffname,driver,maintenance,bmc_password_version\n rack1-01 ,fake-hardware,TRUE,\nrack1-02,fake-hardware,False,2\n,,,\n"
    defaults = { target_state = "manageable" }
  }

  assert {
    condition     = keys(metal_host.machine) == ["rack1-01", "rack1-02"] && metal_host.machine["rack1-01"].maintenance && !metal_host.machine["rack1-02"].maintenance
    error_message = "White space, empty lines and the letter case of TRUE must not matter."
  }
}

run "two_names_that_differ_by_white_space_are_refused" {
  command = plan

  variables {
    csv = "name,driver\nrack1-01,fake-hardware\n rack1-01,fake-hardware\n"
  }

  expect_failures = [var.csv]
}

run "a_line_without_a_name_is_refused" {
  command = plan

  variables {
    csv = "name,driver\nrack1-01,fake-hardware\n,fake-hardware\n"
  }

  expect_failures = [var.csv]
}

run "a_maintenance_that_is_no_truth_value_is_refused" {
  command = plan

  variables {
    csv = "name,driver,maintenance\nrack1-01,fake-hardware,yes\n"
  }

  expect_failures = [var.csv]
}

run "a_password_version_that_is_no_number_is_refused" {
  command = plan

  variables {
    csv = "name,driver,bmc_password_version\nrack1-01,fake-hardware,new\n"
  }

  expect_failures = [var.csv]
}

run "a_file_with_semicolons_is_refused" {
  command = plan

  variables {
    csv = "name;bmc_address\nrack1-01;192.0.2.11\n"
  }

  expect_failures = [var.csv]
}

run "a_machine_twice_in_the_csv_is_refused" {
  command = plan

  variables {
    csv = "name,bmc_address\nrack1-01,192.0.2.11\nrack1-01,192.0.2.12\n"
  }

  expect_failures = [var.csv]
}

run "a_machine_in_both_places_is_refused" {
  command = plan

  variables {
    csv      = "name,bmc_address\nrack1-01,192.0.2.11\n"
    machines = { rack1-01 = { bmc_address = "192.0.2.11" } }
  }

  expect_failures = [var.machines]
}

run "a_machine_without_bmc_and_driver_is_refused" {
  command = plan

  variables {
    machines = { rack1-01 = {} }
  }

  expect_failures = [metal_host.machine["rack1-01"]]
}

run "a_bmc_without_a_password_is_refused" {
  command = plan

  variables {
    machines     = { rack1-01 = { bmc_address = "ipmi://192.0.2.11" } }
    bmc_password = null
  }

  expect_failures = [metal_host.machine["rack1-01"]]
}

run "an_unknown_role_is_refused" {
  command = plan

  variables {
    machines = { rack1-01 = { driver = "fake-hardware", role = "wbe" } }
  }

  expect_failures = [metal_host.machine["rack1-01"]]
}

run "a_count_without_a_class_is_refused" {
  command = plan

  variables {
    roles = { web = { count = 2, image = { url = "http://images.example.com/debian-12.qcow2" } } }
  }

  expect_failures = [var.roles]
}

run "machines_of_a_role_change_in_turns" {
  command = plan

  variables {
    machines = {
      rack1-01 = { driver = "fake-hardware", role = "db", address = "198.51.100.11" }
      rack1-02 = { driver = "fake-hardware", role = "db", address = "2001:db8::12" }
    }
    roles = {
      db = {
        image       = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
        ready_check = { port = 5432, timeout = "20m" }
        rollout     = { group = "databases", max_unavailable = 1, pause = "1m" }
      }
      web = {
        count          = 2
        resource_class = "baremetal"
        image          = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
        rollout        = { canary = 1 }
      }
    }
  }

  assert {
    condition     = metal_deployment.machine["rack1-01"].ready_check.tcp == "198.51.100.11:5432" && metal_deployment.machine["rack1-02"].ready_check.tcp == "[2001:db8::12]:5432"
    error_message = "A machine must be checked at its address and the port of its role."
  }

  assert {
    condition     = alltrue([for d in metal_deployment.machine : d.rollout.max_unavailable == 1 && d.ready_check.timeout == "20m"]) && alltrue([for d in metal_deployment.member : d.rollout.canary == 1])
    error_message = "The machines of a role must have its rollout."
  }
}

run "a_ready_check_of_a_machine_without_address_is_refused" {
  command = plan

  variables {
    machines = { rack1-01 = { driver = "fake-hardware", role = "db" } }
    roles    = { db = { image = { url = "http://images.example.com/debian-12.qcow2" }, ready_check = { port = 22 } } }
  }

  expect_failures = [metal_host.machine["rack1-01"]]
}

run "a_ready_check_of_machines_that_ironic_chooses_is_refused" {
  command = plan

  variables {
    roles = { web = { count = 2, resource_class = "baremetal", image = { url = "http://images.example.com/debian-12.qcow2" }, ready_check = { port = 22 } } }
  }

  expect_failures = [var.roles]
}
