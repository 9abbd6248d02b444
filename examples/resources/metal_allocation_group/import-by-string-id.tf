import {
  to = metal_allocation_group.k8s
  id = "k8s/3"
}
