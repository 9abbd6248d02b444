output "web" {
  description = "Which host each web server runs on, and how it is."
  value = {
    for i, allocation in metal_allocation.web : allocation.name => {
      host  = allocation.node_name
      state = metal_deployment.web[i].provision_state
      power = metal_deployment.web[i].power_state
    }
  }
}
