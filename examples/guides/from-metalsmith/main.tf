terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "protected" {
  type    = bool
  default = true # to undeploy a machine, first apply with -var protected=false
}

locals {
  # A playbook, or a file of its variables.
  file = yamldecode(file("${path.module}/deploy.yml"))
  vars = try([for task in flatten(local.file[*].tasks) : task.vars if can(task.vars.metalsmith_instances)][0], local.file)
  instances = {
    for i in local.vars.metalsmith_instances : try(i.hostname, i.name) => {
      resource_class  = try(i.resource_class, local.vars.metalsmith_resource_class)
      traits          = try(i.traits, local.vars.metalsmith_traits, null)
      candidate_nodes = try(i.candidates, local.vars.metalsmith_candidates, null)
      deployed        = try(i.state, "present") == "present"
    } if try(i.state, "present") != "absent"
  }
}

import {
  for_each = local.instances
  to       = metal_allocation.instance[each.key]
  id       = each.key # metalsmith gives the allocation the name of the host
}

resource "metal_allocation" "instance" {
  for_each = local.instances

  name            = each.key
  resource_class  = each.value.resource_class
  traits          = each.value.traits
  candidate_nodes = each.value.candidate_nodes
}

resource "metal_deployment" "instance" {
  for_each = { for name, instance in local.instances : name => instance if instance.deployed }

  node_id       = metal_allocation.instance[each.key].node_id
  allocation_id = metal_allocation.instance[each.key].id
  adopt         = true
  on_destroy    = "undeploy" # as "metalsmith undeploy": the data is erased
  protected     = var.protected
}
