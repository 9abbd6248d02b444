data "metal_capacity" "site" {}

output "slots" {
  value = "${data.metal_capacity.site.busy} of ${data.metal_capacity.site.max_concurrent} in use"
}

output "free_baremetal" {
  value = try(data.metal_capacity.site.classes["baremetal"].available, 0)
}
