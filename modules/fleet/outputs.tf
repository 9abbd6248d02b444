output "hosts" {
  description = "The hosts by name: `id` (UUID of the node), `bmc_address`, `address`, `hardware`, `resource_class`, `role` and `extra`."
  value = {
    for name, host in metal_host.machine : name => {
      id             = host.id
      bmc_address    = local.machines[name].bmc_address
      address        = local.machines[name].address
      hardware       = local.machines[name].hardware
      resource_class = local.machines[name].resource_class
      role           = local.machines[name].role
      extra          = local.machines[name].extra
    }
  }
}

output "deployments" {
  description = "What is deployed, by host name: `role`, `node` (name of the machine), `node_id` and `address`."
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
  deployments = merge(
    {
      for name, deployment in metal_deployment.machine : name => {
        role    = local.machines[name].role
        node    = name
        node_id = deployment.id
        address = local.machines[name].address
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
