terraform import metal_deployment.db rack1-04
