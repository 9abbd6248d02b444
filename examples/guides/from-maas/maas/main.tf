terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

resource "metal_host" "maas" {
  for_each = local.machines

  name = each.key
  bmc = {
    address             = local.addresses[each.key]
    username            = each.value.power_user
    password_wo         = each.value.power_pass # in no plan and no state
    password_wo_version = 1
  }
  ports          = local.ports[each.key]
  resource_class = each.value.pool.name
  traits         = local.traits[each.key]
  capabilities   = local.capabilities[each.key]
  extra          = { zone = each.value.zone.name, maas = each.value.system_id }
  target_state   = "manageable" # "available" cleans the machine
  on_destroy     = "forget"
}

resource "metal_deployment" "maas" {
  for_each = { for name, m in local.machines : name => m if m.status_name == "Deployed" }

  node_id    = metal_host.maas[each.key].id
  adopt      = true
  on_destroy = "forget"
}
