data "metal_host" "inspected" {
  mac = "52:54:00:01:00:01"
}

# The inventory is null if the machine was never inspected.
output "serial_number" {
  value = try(data.metal_host.inspected.inventory.serial_number, null)
}

output "disks_in_gib" {
  value = try([for disk in data.metal_host.inspected.inventory.disks : floor(disk.size_bytes / pow(1024, 3))], []) # disks may share a name
}

# By LLDP, if the ramdisk collects it.
output "cables" {
  value = try({
    for card in data.metal_host.inspected.inventory.interfaces : card.name => [card.switch_id, card.switch_port_id] if card.switch_id != null
  }, {})
}
