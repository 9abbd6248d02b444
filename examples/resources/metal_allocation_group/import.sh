# Name of the group and number of members
terraform import metal_allocation_group.k8s k8s/3
# Name of the group: all members from k8s-0 to the first number that is missing
terraform import metal_allocation_group.k8s k8s
