output "hosts" {
  description = "The hosts by name: `id` (UUID of the node), `serial_number`, `boot_mac`, `bmc_address` and `address` (of the first network card when the machine was discovered; may be null)."
  value = {
    for name, host in metal_host.rack : name => {
      id            = host.id
      serial_number = local.hosts[name].serial_number
      boot_mac      = local.hosts[name].boot_mac
      bmc_address   = local.hosts[name].bmc_address
      address       = local.hosts[name].ip
    }
  }
}

output "discovered" {
  description = "UUID of the discovered node of each host, known during plan: for an import block in the root module."
  value       = { for name, machine in local.hosts : name => machine.id }
}

output "without_bmc" {
  description = "Machines that are left out because discovery has found no BMC, by name: UUID of the node. With `filter.bmc_cidr` they are in `pending` instead."
  value       = { for name, machine in local.staying : name => machine.id if !contains(keys(local.hosts), name) }
}

output "pending" {
  description = "Discovered machines that are not taken: the reason by UUID of the node."
  value       = metal_discovery_import.rack.pending
}

output "ansible_inventory" {
  description = "Inventory for Ansible with the rack as a group: `terraform output -json NAME > inventory.yml`."
  value = {
    all = {
      children = {
        (replace(var.name, "/[^A-Za-z0-9]/", "_")) = {
          hosts = {
            for name, host in metal_host.rack : name => {
              ansible_host  = coalesce(local.hosts[name].ip, name)
              metal_node_id = host.id
            }
          }
        }
      }
    }
  }
}
