locals {
  live_iso = {
    for name, machine in var.machines : name => merge(var.iso, {
      host_content  = machine.host_content
      contains      = machine.contains == null ? var.iso.contains : machine.contains
      registered    = machine.registered
      installing    = machine.installing
      reboot_policy = contains(var.restart_now, name) ? "always" : var.reboot_policy
    })
  }
}

resource "metal_deployment" "machine" {
  for_each = var.machines

  node_id    = each.value.node_id
  live_iso   = local.live_iso[each.key]
  on_destroy = var.on_destroy
}

# Also names the machines that a plan leaves alone. It is read after the machines have booted.
data "metal_boot_status" "machines" {
  live_iso   = local.live_iso
  depends_on = [metal_deployment.machine]
}
