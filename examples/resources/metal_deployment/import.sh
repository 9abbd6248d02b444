# By the node's UUID or name, the MAC address of a port, or the address of the BMC (bmc:192.0.2.11). The machine is not touched.
terraform import metal_deployment.db 8c0c1a52-1d2b-4e4b-9c0e-6a3b1c1f7d15
terraform import metal_deployment.db rack1-04
terraform import metal_deployment.db 52:54:00:01:00:04
