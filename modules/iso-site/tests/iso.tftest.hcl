# Each run calls the module through its example, as a root module does. METAL_ENDPOINT must name an Ironic for tests: a fake, for
# example, because the machines of the example do not exist.

variables {
  bmc_password = "secret"
}

run "all_machines_boot" {
  module {
    source = "./examples/site"
  }

  assert {
    condition     = keys(output.machines) == ["site-01", "site-02", "site-03"] && output.stale == {} && length(output.older) == 0
    error_message = "All machines must run the ISO."
  }
}

run "shared_content_restarts_no_machine" {
  module {
    source = "./examples/site"
  }

  variables {
    proxy = "http://other.example.com:3128"
  }

  assert {
    condition     = sum(values(output.machines)[*].restarts) == 0
    error_message = "Another proxy must restart no machine."
  }

  assert {
    condition     = keys(output.stale) == ["site-01", "site-02", "site-03"] && contains(output.stale["site-01"], "shared.proxy")
    error_message = "All machines must be stale, because they have the old proxy."
  }
}

run "a_chosen_machine_restarts" {
  module {
    source = "./examples/site"
  }

  variables {
    proxy       = "http://other.example.com:3128"
    restart_now = ["site-01"]
  }

  assert {
    condition     = { for name, machine in output.machines : name => machine.restarts } == { site-01 = 1, site-02 = 0, site-03 = 0 }
    error_message = "Only the machine in restart_now must restart."
  }

  assert {
    condition     = keys(output.stale) == ["site-02", "site-03"] && output.older == toset(["site-02", "site-03"])
    error_message = "The machine that restarted must be neither stale nor older."
  }
}

run "a_url_without_scheme_is_refused" {
  command = plan

  variables {
    iso      = { url = "images.example.com/site.iso" }
    machines = {}
  }

  expect_failures = [var.iso]
}

run "an_unknown_policy_is_refused" {
  command = plan

  variables {
    iso           = { url = "http://images.example.com/site.iso" }
    machines      = {}
    reboot_policy = "sometimes"
  }

  expect_failures = [var.reboot_policy]
}

run "an_unknown_machine_is_refused" {
  command = plan

  variables {
    iso         = { url = "http://images.example.com/site.iso" }
    machines    = {}
    restart_now = ["site-09"]
  }

  expect_failures = [var.restart_now]
}
