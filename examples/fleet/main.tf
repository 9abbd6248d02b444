# Enrolls the hosts that hosts.csv lists, and makes them available. The other examples allocate and deploy these hosts.

terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  poll_interval = "1s" # fake hardware is quick; the default of 10s suits real machines
}

locals {
  hosts = { for host in csvdecode(file("${path.module}/hosts.csv")) : host.name => host }
}

resource "metal_host" "rack1" {
  for_each = local.hosts

  name           = each.key
  driver         = "fake-hardware" # real machines: bmc = { address = each.value.bmc, ... }
  ports          = { (each.value.mac) = { pxe_enabled = true } }
  resource_class = each.value.class
  traits         = compact(split(" ", each.value.traits))
  properties     = { cpus = "32", memory_mb = "131072", local_gb = "893", cpu_arch = "x86_64" } # fake hardware finds none itself
  target_state   = "available"
}
