list "metal_allocation_group" "k8s" {
  provider = metal

  config {
    name_regex     = "^k8s-"
    resource_class = "baremetal"
  }
}
