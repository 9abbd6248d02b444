# The first run calls the module through its example, as a root module does. METAL_ENDPOINT and ONEVIEW_… must name an Ironic and an
# appliance for tests, with at least two free servers that the template "Ironic BL460c Gen10" fits.

variables {
  bmc_password = "secret"
}

run "two_of_the_servers_are_deployed" {
  module {
    source = "./examples/pool"
  }

  assert {
    condition     = length(output.hosts) >= 2 && alltrue([for name, host in output.hosts : name == "pool-${lower(host.serial_number)}"])
    error_message = "Each server that the template fits must become a host."
  }

  assert {
    condition     = keys(output.deployments) == ["app-0", "app-1"] && length(distinct(values(output.deployments)[*].profile)) == 2
    error_message = "Each deployment must have a server profile of its own."
  }
}

run "an_address_without_placeholder_is_refused" {
  command = plan

  variables {
    server_profile_template = "Ironic BL460c Gen10"
    bmc                     = { address = "redfish://192.0.2.1" }
  }

  expect_failures = [var.bmc]
}
