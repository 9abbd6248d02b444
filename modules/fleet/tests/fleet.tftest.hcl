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

run "groups" {
  module {
    source = "./examples/groups"
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

run "a_machine_in_both_places_is_refused" {
  command = plan

  variables {
    csv      = "name,bmc_address\nrack9-01,192.0.2.91\n"
    machines = { rack9-01 = { bmc_address = "192.0.2.91" } }
  }

  expect_failures = [var.machines]
}

run "a_machine_without_bmc_and_driver_is_refused" {
  command = plan

  variables {
    machines = { rack9-01 = {} }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_bmc_without_a_password_is_refused" {
  command = plan

  variables {
    machines     = { rack9-01 = { bmc_address = "ipmi://192.0.2.91" } }
    bmc_password = null
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_key_without_a_password_is_refused" {
  command = plan

  variables {
    csv           = "name,bmc_address,bmc_password_key\nrack9-01,ipmi://192.0.2.91,rack1\nrack9-02,ipmi://192.0.2.92,rakc1\n"
    bmc_password  = "that of other racks"
    bmc_passwords = { rack1 = "secret" }
  }

  expect_failures = [metal_host.machine["rack9-02"]]
}

run "an_unknown_role_is_refused" {
  command = plan

  variables {
    machines = { rack9-01 = { driver = "fake-hardware", role = "wbe" } }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "machines_of_a_role_change_in_turns" {
  command = plan

  variables {
    machines = {
      rack9-01 = { driver = "fake-hardware", role = "db", address = "198.51.100.91" }
      rack9-02 = { driver = "fake-hardware", role = "db", address = "2001:db8::12" }
    }
    roles = {
      db = {
        image       = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
        ready_check = { port = 5432, timeout = "20m" }
        rollout     = { group = "databases", max_unavailable = 1, pause = "1m" }
      }
      web = {
        group   = { size = 2, resource_class = "baremetal" }
        image   = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
        rollout = { canary = 1 }
      }
    }
  }

  assert {
    condition     = metal_deployment.machine["rack9-01"].ready_check.tcp == "198.51.100.91:5432" && metal_deployment.machine["rack9-02"].ready_check.tcp == "[2001:db8::12]:5432"
    error_message = "A machine must be checked at its address and the port of its role."
  }

  assert {
    condition     = alltrue([for d in metal_deployment.machine : d.rollout.max_unavailable == 1 && d.ready_check.timeout == "20m"]) && alltrue([for d in metal_deployment.member : d.rollout.canary == 1])
    error_message = "The machines of a role must have its rollout."
  }
}

run "machines_of_a_kind_are_serviced_in_the_turns_of_their_role" {
  command = plan

  variables {
    machines = { rack9-01 = { driver = "fake-hardware", hardware = "r650", role = "db" } }
    hardware = {
      r650 = {
        bios_settings    = { ProcVirtualization = "Enabled" }
        hardware_changes = { on_active = "service", rollout = { group = "databases", max_unavailable = 1, pause = "5m" } }
      }
    }
    roles = {
      db = {
        image   = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
        rollout = { group = "databases", max_unavailable = 1, pause = "5m" }
      }
    }
  }

  assert {
    condition     = metal_host.machine["rack9-01"].hardware_changes.rollout == metal_deployment.machine["rack9-01"].rollout && metal_host.machine["rack9-01"].hardware_changes.rollout.pause == "5m"
    error_message = "The hosts of a kind must have its rollout."
  }
}

run "machines_of_a_kind_are_accepted_by_its_model" {
  command = plan

  variables {
    csv           = "name,driver,hardware\nrack9-01,fake-hardware,gpu\nrack9-02,fake-hardware,old\n"
    hardware_lock = "{\"Rack One\": {\"memory_mb\": 147456, \"disks\": [{\"count\": 2, \"type\": \"ssd\"}]}, \"Rack Two\": {\"cpus\": 8}}"
    hardware = {
      gpu = { model = "Rack One", qualification = { steps = [{ interface = "deploy", step = "burnin_cpu" }], valid_for = "90d" } }
      old = { model = "Rack Two" }
    }
  }

  assert {
    condition     = metal_host.machine["rack9-01"].expect_hardware.memory_mb == 147456 && metal_host.machine["rack9-02"].expect_hardware.cpus == 8
    error_message = "The hosts of a kind must expect its model."
  }
  assert {
    condition     = metal_host.machine["rack9-01"].qualification.steps[0].step == "burnin_cpu" && metal_host.machine["rack9-02"].qualification == null
    error_message = "The hosts of a kind must have its qualification."
  }
}

run "a_model_that_is_not_in_the_lock_file_is_refused" {
  command = plan

  variables {
    csv           = "name,driver,hardware\nrack9-01,fake-hardware,gpu\n"
    hardware_lock = "{\"Rack One\": {\"cpus\": 8}}"
    hardware      = { gpu = { model = "Rack Two" } }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_ready_check_of_a_machine_without_address_is_refused" {
  command = plan

  variables {
    machines = { rack9-01 = { driver = "fake-hardware", role = "db" } }
    roles    = { db = { image = { url = "http://images.example.com/debian-12.qcow2" }, ready_check = { port = 22 } } }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_machine_that_a_checked_group_may_get_needs_an_address" {
  command = plan

  variables {
    csv = "name,driver,role,resource_class,target_state,maintenance,retired,traits,address\nempty,fake-hardware,,,,,,CUSTOM_SSD,\nreachable,fake-hardware,,,,,,CUSTOM_SSD,198.51.100.91\nother-class,fake-hardware,,gpu,,,,CUSTOM_SSD,\nnamed-role,fake-hardware,db,,,,,CUSTOM_SSD,\nunprepared,fake-hardware,,,manageable,,,CUSTOM_SSD,\nmaintained,fake-hardware,,,,TRUE,,CUSTOM_SSD,\nretired,fake-hardware,,,,,TRUE,CUSTOM_SSD,\nno-trait,fake-hardware,,,,,,,\nno-candidate,fake-hardware,,,,,,CUSTOM_SSD,\nexcluded,fake-hardware,,,,,,CUSTOM_SSD,\n"
    machines = {
      empty-in-map = { driver = "fake-hardware", traits = ["CUSTOM_SSD"], address = "" }
      null-in-map  = { driver = "fake-hardware", traits = ["CUSTOM_SSD"] }
    }
    roles = {
      db = { image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" } }
      web = {
        image       = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }
        ready_check = { port = 22 }
        group = {
          size            = 1
          resource_class  = "baremetal"
          traits          = ["CUSTOM_SSD"]
          candidate_nodes = ["empty", "reachable", "other-class", "named-role", "unprepared", "maintained", "retired", "no-trait", "excluded", "empty-in-map", "null-in-map"]
          require         = { exclude = ["excluded"] }
        }
      }
    }
  }

  expect_failures = [metal_host.machine["empty"], metal_host.machine["empty-in-map"], metal_host.machine["null-in-map"]]
}

run "a_group_without_a_check_needs_no_address" {
  command = plan

  variables {
    machines = { rack9-01 = { driver = "fake-hardware" } }
    roles    = { web = { image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }, group = { size = 1, resource_class = "baremetal" } } }
  }
}

run "a_machine_has_its_own_protection" {
  command = plan

  variables {
    csv = "name,driver,role,protected\nrack9-01,fake-hardware,db,\nrack9-02,fake-hardware,db,FALSE\nrack9-03,fake-hardware,web,True\n"
    roles = {
      db  = { image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" }, protected = true }
      web = { image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" } }
    }
  }

  assert {
    condition     = metal_deployment.machine["rack9-01"].protected && !metal_deployment.machine["rack9-02"].protected
    error_message = "An empty cell must mean the value of the role, and FALSE must end the protection of one machine."
  }

  assert {
    condition     = metal_deployment.machine["rack9-03"].protected
    error_message = "TRUE must protect one machine."
  }
}

run "protection_of_a_machine_without_a_role_is_refused" {
  command = plan

  variables {
    csv = "name,driver,protected\nrack9-01,fake-hardware,FALSE\n"
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_protection_that_is_no_truth_value_is_refused" {
  command = plan

  variables {
    csv   = "name,driver,role,protected\nrack9-01,fake-hardware,db,yes\n"
    roles = { db = { image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" } } }
  }

  expect_failures = [var.machines]
}

run "an_unknown_column_is_refused" {
  command = plan

  variables {
    csv = "name,bcm_address\nrack9-01,192.0.2.91\n"
  }

  expect_failures = [var.machines]
}

run "a_column_twice_is_refused" {
  command = plan

  variables {
    csv = "name,driver,driver\nrack9-01,fake-hardware,fake-hardware\n"
  }

  expect_failures = [var.machines]
}

run "semicolons_are_refused" {
  command = plan

  variables {
    csv = "name;bmc_address\nrack9-01;192.0.2.91\n"
  }

  expect_failures = [var.machines]
}

run "a_line_with_more_cells_is_refused" {
  command = plan

  variables {
    csv = "name,driver\nrack9-01,fake-hardware,compute\n"
  }

  expect_failures = [var.machines]
}

run "an_empty_csv_is_refused" {
  command = plan

  variables {
    csv = ""
  }

  expect_failures = [var.machines]
}

run "a_csv_without_machines_is_refused" {
  command = plan

  variables {
    csv = "name,driver\n"
  }

  expect_failures = [var.machines]
}

run "a_line_without_a_name_is_refused" {
  command = plan

  variables {
    csv = "name,driver\nrack9-01,fake-hardware\n,fake-hardware\n"
  }

  expect_failures = [var.machines]
}

run "two_lines_of_a_machine_are_refused" {
  command = plan

  variables {
    csv = "name,driver\nrack9-01,fake-hardware\n rack9-01,fake-hardware\n"
  }

  expect_failures = [var.machines]
}

run "a_maintenance_that_is_no_truth_value_is_refused" {
  command = plan

  variables {
    csv = "name,driver,maintenance\nrack9-01,fake-hardware,yes\n"
  }

  expect_failures = [var.machines]
}

run "a_spreadsheet" {
  command = plan

  variables {
    csv      = "\ufeff name , driver,maintenance,traits,macs,extra.rack,\r\n rack9-01 ,fake-hardware,TRUE,,\"52-54-00-9F-00-01, 52:54:00:9f:00:81\",rack1,\r\n\r\nrack9-02,fake-hardware,False,CUSTOM_GPU,,\u00a0,\r\n,,,,,,\r\n"
    defaults = { target_state = "manageable", extra = { rack = "none", site = "north" }, traits = ["CUSTOM_NVME"] }
  }

  assert {
    condition     = keys(metal_host.machine) == ["rack9-01", "rack9-02"] && metal_host.machine["rack9-01"].maintenance && !metal_host.machine["rack9-02"].maintenance
    error_message = "White space, empty lines, a byte order mark, CRLF and the letter case of TRUE must not matter."
  }

  assert {
    condition     = join(" ", keys(metal_host.machine["rack9-01"].ports)) == "52:54:00:9f:00:01 52:54:00:9f:00:81"
    error_message = "MAC addresses may be separated by spaces and commas, and may have hyphens."
  }

  assert {
    condition     = metal_host.machine["rack9-01"].extra == { rack = "rack1", site = "north" } && metal_host.machine["rack9-02"].extra == { rack = "none", site = "north" }
    error_message = "Columns of extra must become extra, and empty cells the defaults."
  }

  assert {
    condition     = metal_host.machine["rack9-01"].traits == toset(["CUSTOM_NVME"]) && metal_host.machine["rack9-02"].traits == toset(["CUSTOM_GPU"])
    error_message = "An empty cell must mean the default."
  }
}

run "kinds_of_machines" {
  command = plan

  variables {
    machines = {
      rack9-01 = { driver = "fake-hardware", hardware = "bonded", macs = ["52:54:00:9f:00:01", "52:54:00:9f:00:02", "52:54:00:9f:00:03"] }
      rack9-02 = { driver = "fake-hardware", macs = ["52:54:00:9f:00:04"] }
    }
    hardware = {
      bonded = {
        port_groups   = { bond0 = { cards = [1, 3], mode = "802.3ad", properties = { miimon = "100" } } }
        pxe_cards     = [1]
        bios_settings = { LogicalProc = "Disabled" }
        raid          = { volumes = [{ level = "1", size_gb = "MAX", root = true }] }
        secure_boot   = true
      }
      plain = { bios_settings = { LogicalProc = "Enabled" } }
    }
    defaults = { hardware = "plain" }
  }

  assert {
    condition     = join(" ", [for mac, port in metal_host.machine["rack9-01"].ports : mac if port.port_group == "bond0"]) == "52:54:00:9f:00:01 52:54:00:9f:00:03"
    error_message = "The first and the third card must be in the bond."
  }

  assert {
    condition     = metal_host.machine["rack9-01"].ports["52:54:00:9f:00:01"].pxe_enabled && !metal_host.machine["rack9-01"].ports["52:54:00:9f:00:03"].pxe_enabled
    error_message = "Only the first card may boot."
  }

  assert {
    condition     = metal_host.machine["rack9-01"].port_groups["bond0"].mode == "802.3ad" && metal_host.machine["rack9-01"].raid.volumes[0].root && metal_host.machine["rack9-01"].secure_boot
    error_message = "A machine must have the settings of its kind."
  }

  assert {
    condition     = metal_host.machine["rack9-01"].bios_settings["LogicalProc"] == "Disabled" && metal_host.machine["rack9-02"].bios_settings["LogicalProc"] == "Enabled"
    error_message = "A machine that names no kind must have the default one, and others their own."
  }
}

run "an_unknown_kind_is_refused" {
  command = plan

  variables {
    csv      = "name,driver,hardware\nrack9-01,fake-hardware,r560\n"
    hardware = { r650 = {} }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "too_few_network_cards_are_refused" {
  command = plan

  variables {
    csv      = "name,driver,hardware,macs\nrack9-01,fake-hardware,r650,52:54:00:9f:00:01\n"
    hardware = { r650 = { port_groups = { bond0 = { cards = [1, 2] } } } }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_card_in_two_bonds_is_refused" {
  command = plan

  variables {
    hardware = { r650 = { port_groups = { bond0 = { cards = [1, 2] }, bond1 = { cards = [2, 3] } } } }
  }

  expect_failures = [var.hardware]
}

run "cards_count_from_one" {
  command = plan

  variables {
    hardware = { r650 = { port_groups = { bond0 = { cards = [0, 1] } } } }
  }

  expect_failures = [var.hardware]
}

run "a_mac_address_of_two_machines_is_refused" {
  command = plan

  variables {
    csv = "name,driver,macs\nrack9-01,fake-hardware,52:54:00:9f:00:01\nrack9-02,fake-hardware,52-54-00-9F-00-01\n"
  }

  expect_failures = [metal_host.machine["rack9-01"], metal_host.machine["rack9-02"]]
}

run "a_mac_address_with_a_typing_error_is_refused" {
  command = plan

  variables {
    csv = "name,driver,macs\nrack9-01,fake-hardware,52:54:00:9f:00:1\n"
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_bmc_of_two_machines_is_refused" {
  command = plan

  variables {
    machines     = { rack9-01 = { bmc_address = "ipmi://192.0.2.91" }, rack9-02 = { bmc_address = "IPMI://192.0.2.91/" } }
    bmc_password = "secret"
  }

  expect_failures = [metal_host.machine["rack9-01"], metal_host.machine["rack9-02"]]
}

run "a_machine_cannot_name_a_role_with_a_group" {
  command = plan

  variables {
    machines = { rack9-01 = { driver = "fake-hardware", role = "web" } }
    roles    = { web = { group = { size = 1, resource_class = "baremetal" }, image = { url = "http://images.example.com/debian-12.qcow2" } } }
  }

  expect_failures = [metal_host.machine["rack9-01"]]
}

run "a_quarantine_without_a_group_is_refused" {
  command = plan

  variables {
    roles = { db = { image = { url = "http://images.example.com/debian-12.qcow2" }, on_failure = "quarantine" } }
  }

  expect_failures = [var.roles]
}

run "a_machine_with_the_name_of_a_member_is_refused" {
  command = plan

  variables {
    machines = { web-0 = { driver = "fake-hardware" } }
    roles    = { web = { group = { size = 1, resource_class = "baremetal" }, image = { url = "http://images.example.com/debian-12.qcow2", checksum = "http://images.example.com/SHA256SUMS" } } }
  }

  expect_failures = [metal_deployment.member["web-0"]]
}
