import {
  to = metal_inspection_rule.gpu
  id = "GPU nodes"
}
