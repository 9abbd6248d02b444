terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  endpoint = "http://ironic.example.com:6385"
}

variable "bmc_password" {
  description = "Foreman does not return it."
  type        = string
  ephemeral   = true
}

locals {
  # curl -u USER https://foreman.example.com/api/hosts/NAME > hosts/NAME.json
  files = [for file in fileset(path.module, "hosts/*.json") : jsondecode(file("${path.module}/${file}"))]
  bmcs  = { for host in local.files : host.name => [for i in host.interfaces : i if i.type == "bmc"][0] if contains(host.interfaces[*].type, "bmc") }
  hosts = { for host in local.files : host.name => host if contains(keys(local.bmcs), host.name) }
}

resource "metal_host" "foreman" {
  for_each = local.hosts

  name = each.key
  bmc = {
    address             = "${local.bmcs[each.key].provider == "Redfish" ? "redfish" : "ipmi"}://${try(coalesce(local.bmcs[each.key].ip), "[${local.bmcs[each.key].ip6}]")}"
    username            = local.bmcs[each.key].username
    password_wo         = var.bmc_password
    password_wo_version = 1
  }
  ports          = { for i in each.value.interfaces : i.mac => { pxe_enabled = i.provision } if i.type == "interface" && !i.virtual && i.mac != null }
  resource_class = try(replace(each.value.hostgroup_title, "/", "-"), null)
  capabilities   = try({ boot_mode = strcontains(each.value.pxe_loader, "UEFI") ? "uefi" : "bios" }, null)
  extra          = { location = each.value.location_name }
  target_state   = "manageable" # "available" cleans the machine
  on_destroy     = "forget"
}

resource "metal_deployment" "foreman" {
  for_each = { for name, host in local.hosts : name => host if try(host.installed_at != null && !host.build, false) }

  node_id    = metal_host.foreman[each.key].id
  adopt      = true
  on_destroy = "forget"
}
