output "hosts" {
  description = "The hosts by name: `id` (UUID of the node), `bmc_address`, `address`, `hardware`, `resource_class`, `role`, `extra` and `pending_changes` (attributes whose new settings the machine lacks). While `on_change = \"ignore\"` keeps a machine at the network data that it was deployed with, `address` is from those."
  value = {
    for name, host in metal_host.machine : name => {
      id              = host.id
      bmc_address     = local.machines[name].bmc_address
      address         = local.addresses[name]
      hardware        = local.machines[name].hardware
      resource_class  = local.machines[name].resource_class
      role            = local.machines[name].role
      extra           = local.machines[name].extra
      pending_changes = host.pending_changes == null ? toset([]) : host.pending_changes
    }
  }
}

output "deployments" {
  description = "What is deployed, by the name of the machine or of the member of a group: `role`, `node` (name of the machine), `node_id` and `address`."
  value       = local.deployments
}

output "ansible_inventory" {
  description = "Inventory for Ansible with a group for each role: `terraform output -json NAME > inventory.yml`."
  value = {
    all = {
      children = {
        for role in keys(var.roles) : role => {
          hosts = {
            for name, deployment in local.deployments : name => {
              ansible_host  = coalesce(deployment.address, name)
              metal_node    = deployment.node
              metal_node_id = deployment.node_id
            } if deployment.role == role
          }
        }
      }
    }
  }
}

locals {
  # on_change = "ignore" keeps a machine as it was deployed, so that it does not have a new address.
  wanted   = { for name, machine in local.machines : name => try([for network in jsondecode(machine.network_data).networks : network.ip_address if can(network.ip_address)], []) }
  networks = { for name, deployment in metal_deployment.machine : name => try([for network in jsondecode(deployment.config_drive.network_data).networks : network if can(network.ip_address)], []) }
  present = { # the addresses of default routes first
    for name, networks in local.networks : name => concat(
      [for network in networks : network.ip_address if anytrue([for route in network.routes : contains(["0.0.0.0", "::"], route.network)])],
      networks[*].ip_address,
    )
  }
  addresses = {
    for name, machine in local.machines : name => (
      contains(local.wanted[name], coalesce(machine.address, "-")) && !contains(try(local.present[name], []), coalesce(machine.address, "-")) ? try(local.present[name][0], machine.address) : machine.address
    )
  }

  deployments = merge(
    {
      for name, deployment in metal_deployment.machine : name => {
        role    = local.machines[name].role
        node    = name
        node_id = deployment.id
        address = local.addresses[name]
      }
    },
    {
      for name, deployment in metal_deployment.member : name => {
        role    = local.members[name].role
        node    = local.members[name].allocation.node_name
        node_id = deployment.id
        address = local.members[name].address
      }
    },
  )
}
