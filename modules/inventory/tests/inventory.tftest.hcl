# What the module makes of single machines. These tests need no Ironic.

variables {
  machines = {
    "DB-01.Rack1" = {
      status      = "Active"
      bmc_address = "192.0.2.11/24"
      primary_ips = ["203.0.113.11", "2001:DB8:110::11"]
      role        = "db"
      hardware    = "r650"
      extra       = { rack = "rack1", serial = "SN0001" }
      interfaces = {
        eno1          = { mac = "5254.0012.0001", bond = "bond0", mtu = 1500 }
        eno2          = { mac = "52-54-00-12-00-02", bond = "bond0" }
        eno3          = { mac = "52:54:00:12:00:03" }
        eno4          = {}
        bond0         = { mac = "52:54:00:12:00:01", mtu = 9000 }
        "bond0.110"   = { mac = "52:54:00:12:00:01", parent = "bond0", vlan = 110, mtu = 1500, addresses = ["203.0.113.11/24", "2001:db8:110::11/64"] }
        storage-vlan  = { parent = "bond0", vlan = 120, addresses = ["198.51.100.11/24"] }
        "Ethernet5/1" = { mac = "52:54:00:12:00:05", addresses = ["192.0.2.129/31"] }
      }
    }
    web-1 = {
      status      = "offline"
      bmc_address = "2001:db8:ff::21"
      interfaces  = { eno1 = { mac = "52:54:00:12:00:21", addresses = ["203.0.113.21/24"] } }
    }
    web-2 = { status = "Planned" }
    web-3 = { status = "inventory", bmc_address = "192.0.2.11" }
  }
  networks = {
    "203.0.113.0/24"        = { gateway = "203.0.113.1", dns = ["203.0.113.53"], search = ["example.com"] }
    "2001:0db8:0110:0::/64" = { gateway = "2001:db8:110::1", dns = ["2001:db8:110::53"] }
    "198.51.100.0/24"       = { gateway = "198.51.100.1", dns = ["198.51.100.53"], routes = [{ to = "198.18.0.0/16", via = "198.51.100.1" }] }
    "192.0.2.128/31"        = { gateway = "192.0.2.128" }
    "100.64.0.0/10"         = {}
  }
}

run "machines" {
  command = plan

  assert {
    condition     = keys(output.machines) == ["DB-01.Rack1", "web-1"] && output.left_out == { web-2 = "Planned", web-3 = "inventory" }
    error_message = "Planned machines and machines in store must become no hosts."
  }

  assert {
    condition     = output.machines["DB-01.Rack1"].hostname == "db-01.rack1" && output.machines["DB-01.Rack1"].address == "203.0.113.11"
    error_message = "A host name must be in small letters, and the first primary address the one that others use."
  }

  assert {
    condition     = output.machines["DB-01.Rack1"].extra == tomap({ rack = "rack1", serial = "SN0001" }) && output.machines["DB-01.Rack1"].hardware == "r650" && output.machines["DB-01.Rack1"].role == "db"
    error_message = "What the module fleet reads must arrive there."
  }

  assert {
    condition     = output.machines["DB-01.Rack1"].macs == ["52:54:00:12:00:05", "52:54:00:12:00:01", "52:54:00:12:00:02", "52:54:00:12:00:03"]
    error_message = "The MAC addresses must be those of the cards, not of bonds and VLANs, in Ironic's notation."
  }

  assert {
    condition     = output.machines["DB-01.Rack1"].bmc_address == "redfish-virtualmedia://192.0.2.11" && output.machines["web-1"].bmc_address == "redfish-virtualmedia://[2001:db8:ff::21]"
    error_message = "The address of a BMC must get a scheme, without the prefix length."
  }

  assert {
    condition     = output.machines["web-1"].maintenance && output.machines["DB-01.Rack1"].maintenance == null
    error_message = "A machine that is offline must be in maintenance, and Terraform must not manage that of others."
  }

  assert {
    condition     = { for link in jsondecode(output.machines["DB-01.Rack1"].network_data).links : link.id => link.type } == { "Ethernet5-1" = "phy", eno1 = "phy", eno2 = "phy", bond0 = "bond", "bond0.110" = "vlan", "bond0.120" = "vlan" }
    error_message = "Network data must have the cards, bonds and VLANs that carry addresses, and no other."
  }

  assert {
    condition     = toset([for n in jsondecode(output.machines["DB-01.Rack1"].network_data).networks : "${n.ip_address} ${n.type}"]) == toset(["203.0.113.11 ipv4", "2001:db8:110::11 ipv6", "198.51.100.11 ipv4", "192.0.2.129 ipv4"])
    error_message = "Network data must have all addresses."
  }

  assert {
    condition = toset(flatten([for n in jsondecode(output.machines["DB-01.Rack1"].network_data).networks : [for r in n.routes : "${r.network} ${r.gateway}"]])) == toset([
      "0.0.0.0 203.0.113.1", ":: 2001:db8:110::1", "198.18.0.0 198.51.100.1",
    ])
    error_message = "The default routes must be those of the primary addresses."
  }

  assert {
    condition     = [for s in jsondecode(output.machines["DB-01.Rack1"].network_data).services : s.address] == ["203.0.113.53", "2001:db8:110::53"]
    error_message = "The name servers must be those of the networks of the primary addresses."
  }

  assert {
    condition     = [for r in jsondecode(output.machines["web-1"].network_data).networks[0].routes : r.gateway] == ["203.0.113.1"]
    error_message = "Without primary addresses, all addresses count."
  }
}

run "dhcp" {
  command = plan

  variables {
    static_addresses = false
  }

  assert {
    condition     = alltrue([for machine in output.machines : machine.network_data == null])
    error_message = "Machines with DHCP must get no network data."
  }
}

run "a_machine_without_addresses" {
  command = plan

  variables {
    machines = {
      web-1 = {
        bmc_address = "192.0.2.11"
        primary_ips = ["203.0.113.11/24"]
        interfaces  = { eno1 = { mac = "52:54:00:12:00:01", mtu = 9000, bond = "bond0" }, eno2 = { mac = "52:54:00:12:00:02", bond = "bond0" }, bond0 = {} }
      }
    }
  }

  assert {
    condition     = output.machines["web-1"].network_data == null && output.machines["web-1"].address == "203.0.113.11"
    error_message = "A machine without static addresses must use DHCP."
  }
}

run "a_router_for_a_point_to_point_link" {
  command = plan

  variables {
    machines = { edge-1 = { bmc_address = "ipmi://192.0.2.11", interfaces = { eno1 = { mac = "52:54:00:12:00:01", addresses = ["192.0.2.129/31"] } } } }
  }

  assert {
    condition     = jsondecode(output.machines["edge-1"].network_data).networks[0].routes[0].gateway == "192.0.2.128" && output.machines["edge-1"].bmc_address == "ipmi://192.0.2.11"
    error_message = "The router of a /31 must be the other address, and a whole address of a BMC must stay."
  }
}

run "addresses_of_bmcs" {
  command = plan

  variables {
    machines = {
      lab-1 = { bmc_address = " 192.0.2.11:8000", interfaces = { eno1 = { mac = "52:54:00:12:00:01" } } }
      lab-2 = { bmc_address = "[2001:db8::1]:8443", interfaces = { eno1 = { mac = "52:54:00:12:00:02" } } }
      lab-3 = { bmc_address = "2001:db8::2/64", interfaces = { eno1 = { mac = "52:54:00:12:00:03" } } }
    }
  }

  assert {
    condition = [for machine in output.machines : machine.bmc_address] == [
      "redfish-virtualmedia://192.0.2.11:8000", "redfish-virtualmedia://[2001:db8::1]:8443", "redfish-virtualmedia://[2001:db8::2]",
    ]
    error_message = "Ports must stay, prefix lengths must go, and IPv6 addresses must have brackets."
  }
}

run "without_networks" {
  command = plan

  variables {
    machines = { web-1 = { bmc_address = "192.0.2.11", interfaces = { eno1 = { mac = "52:54:00:12:00:01", addresses = ["203.0.113.11/32"] } } } }
    networks = {}
  }

  assert {
    condition     = output.machines["web-1"].network_data != null
    error_message = "An inventory without networks has machines without default routes."
  }
}

run "one_primary_address_in_a_network_is_enough" {
  command = plan

  variables {
    machines = {
      web-1 = { bmc_address = "192.0.2.11", interfaces = { eno1 = { mac = "52:54:00:12:00:01", addresses = ["203.0.113.11/24", "203.0.113.12/32", "2001:db8:220::1/64"] } } }
    }
  }

  assert {
    condition     = output.machines["web-1"].network_data != null
    error_message = "Other addresses must be free."
  }
}

# Which faults the module finds, and what it says of them: TestFakeModules_inventoryNamesEachFault.
run "a_machine_with_a_fault_is_refused" {
  command = plan

  variables {
    machines = { m1 = { interfaces = { eno1 = { mac = "52:54:00:12:00:01" } } } }
  }

  expect_failures = [output.machines]
}

run "an_empty_inventory_is_refused" {
  command = plan

  variables {
    machines = {
      m1 = { status = "planned" }
    }
  }

  expect_failures = [output.machines]
}

run "a_route_by_a_router_outside_its_subnet_is_refused" {
  command = plan

  variables {
    networks = { "203.0.113.0/24" = { routes = [{ to = "198.18.0.0/16", via = "203.0.114.1" }] } }
  }

  expect_failures = [var.networks]
}

run "a_gateway_outside_its_subnet_is_refused" {
  command = plan

  variables {
    networks = { "203.0.113.0/24" = { gateway = "203.0.114.1" } }
  }

  expect_failures = [var.networks]
}
