# Each run calls the module through an example, as a root module does. METAL_ENDPOINT must name an Ironic for tests: a fake, for
# example, because the machines of the examples do not exist.

variables {
  bmc_password = "secret"
}

run "yaml" {
  module {
    source = "./examples/yaml"
  }

  assert {
    condition     = { for name, host in output.hosts : name => "${host.role} ${host.address}" } == { rack1-01 = "db 203.0.113.11", rack1-02 = "web 203.0.113.12" }
    error_message = "Each machine of the file that is not planned must become a host."
  }
}

run "netbox" {
  module {
    source = "./examples/netbox"
  }

  assert {
    condition     = { for name, host in output.hosts : name => "${host.role} ${host.address}" } == { "ams1-db-01" = "database 203.0.113.11", "AMS1-WEB-01" = "web 203.0.113.12" }
    error_message = "Each device that is active or staged must become a host."
  }

  assert {
    condition     = output.left_out == { "ams1-web-02" = "planned", "device 104" = "inventory" }
    error_message = "Devices that are planned or in store must become no hosts, also without a name."
  }
}

run "nautobot" {
  module {
    source = "./examples/nautobot"
  }

  assert {
    condition     = output.hosts["ams01-k8s-02"].bmc_address == "redfish-virtualmedia://[2001:db8:ff::32]/redfish/v1/Systems/1" && output.hosts["ams01-k8s-02"].resource_class == "proliant-dl360-gen11"
    error_message = "The BMC must have the address of the interface for management."
  }
}
