# By UUID, name, MAC address of a port, or address of the BMC. The machine is not touched.
terraform import metal_host.rack2_01 0a3ee9f1-6f0b-4d1c-9a54-3f4f0c6f1f3e
terraform import metal_host.rack2_01 rack2-01
terraform import metal_host.rack2_01 52:54:00:02:00:01
terraform import metal_host.rack2_01 bmc:192.0.2.11
