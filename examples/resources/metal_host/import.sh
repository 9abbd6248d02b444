# UUID of the node
terraform import metal_host.rack2_01 0a3ee9f1-6f0b-4d1c-9a54-3f4f0c6f1f3e
# Name of the node
terraform import metal_host.rack2_01 rack2-01
# MAC address of a port
terraform import metal_host.rack2_01 52:54:00:02:00:01
# Address of the BMC
terraform import metal_host.rack2_01 bmc:192.0.2.11
