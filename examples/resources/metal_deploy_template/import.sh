# UUID of the deploy template
terraform import metal_deploy_template.raid1 5f6c1e0d-3f0a-4c39-8d8b-2b7d1f5f2a77
# Name of the deploy template
terraform import metal_deploy_template.raid1 CUSTOM_RAID1
