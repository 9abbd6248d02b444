# terraform test -test-directory=tests/fake: with a fake Ironic at METAL_ENDPOINT.

provider "metal" {
  poll_interval = "1s"
}

variables {
  environment = "test"
  nodes       = { db-1 = "203.0.113.11/24" }
}

run "hosts" {
  module {
    source = "./tests/fake/hosts"
  }
}

run "deploys" {
  assert {
    condition     = metal_deployment.db["db-1"].provision_state == "active"
    error_message = "The database must be deployed."
  }
}

run "another_image_rebuilds" {
  variables {
    image = "http://images.example.com/debian-13.qcow2"
  }

  assert {
    condition     = metal_deployment.db["db-1"].rebuilds == 1
    error_message = "Another image must rebuild the database."
  }
}
