# The first run calls the module through its example, as a root module does: an import block in the module would be an error.
# METAL_ENDPOINT must name an Ironic for tests that has discovered machines, such as "fakeironic -discover 4".

variables {
  bmc_password = "secret"
}

run "the_rack_names_itself" {
  module {
    source = "./examples/rack"
  }

  assert {
    condition     = length(output.ansible_inventory.all.children.r12.hosts) > 0 && alltrue([for name in keys(output.ansible_inventory.all.children.r12.hosts) : startswith(name, "r12-")])
    error_message = "Each discovered machine must become a host with a name of the rack."
  }

  assert {
    condition     = output.without_bmc == {}
    error_message = "All machines have a BMC."
  }
}

run "a_name_with_spaces_is_refused" {
  command = plan

  variables {
    name    = "rack 12"
    include = []
  }

  expect_failures = [var.name]
}

run "a_bmc_address_without_placeholder_is_refused" {
  command = plan

  variables {
    name    = "r14"
    include = []
    bmc     = { address = "ipmi://198.18.0.1" }
  }

  expect_failures = [var.bmc]
}

run "another_power_control_is_refused" {
  command = plan

  variables {
    name          = "r14"
    include       = []
    power_control = "manual"
  }

  expect_failures = [var.power_control]
}
