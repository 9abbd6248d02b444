resource "metal_inspection_rule" "gpu" {
  description = "GPU nodes"
  priority    = 10

  conditions = [{
    op   = "contains"
    args = jsonencode({ value = "{inventory[system_vendor][product_name]}", regex = "GPU|XE9680" })
  }]
  actions = [{
    op   = "add-trait"
    args = jsonencode({ name = "CUSTOM_GPU" })
  }]
}
