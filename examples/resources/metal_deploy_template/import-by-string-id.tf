import {
  to = metal_deploy_template.raid1
  id = "CUSTOM_RAID1"
}
