resource "metal_deploy_template" "raid1" {
  name = "CUSTOM_RAID1"

  steps = [{
    interface = "raid"
    step      = "apply_configuration"
    priority  = 90 # after the ramdisk has booted (100), before the image is written (80)
    args = jsonencode({
      raid_config     = { logical_disks = [{ size_gb = "MAX", raid_level = "1", is_root_volume = true }] }
      delete_existing = true
    })
  }]
}
