import {
  to = metal_allocation_group.k8s
  identity = {
    id = "5f6c1e0d-3f0a-4c39-8d8b-2b7d1f5f2a77"
  }
}
