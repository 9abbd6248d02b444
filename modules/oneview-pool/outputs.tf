output "hosts" {
  description = "The hosts by name: `id` (UUID of the node), `serial_number`, `server` (its name in OneView) and `bmc_address`."
  value = {
    for name, host in metal_host.pool : name => {
      id            = host.id
      serial_number = local.servers[name].serial_number
      server        = local.servers[name].name
      bmc_address   = local.servers[name].address
    }
  }
}

output "without_address" {
  description = "Servers that are left out because OneView knows no address of their iLO, by name of the host: name of the server in OneView."
  value       = { for name, server in local.selected : name => server.name if server.address == null }
}

output "deployments" {
  description = "The deployments by name: `node` and `node_id` of the host, and `profile`, the URI of its server profile."
  value       = local.deployments
}

output "ansible_inventory" {
  description = "Inventory for Ansible with the deployments: `terraform output -json NAME > inventory.yml`. Add `ansible_host` if the names cannot be resolved."
  value = {
    all = {
      hosts = {
        for name, deployment in local.deployments : name => {
          metal_node    = deployment.node
          metal_node_id = deployment.node_id
        }
      }
    }
  }
}

locals {
  deployments = {
    for name, deployment in metal_deployment.pool : name => {
      node    = metal_allocation.pool[name].node_name
      node_id = deployment.id
      profile = metal_oneview_profile.pool[name].id
    }
  }
}
