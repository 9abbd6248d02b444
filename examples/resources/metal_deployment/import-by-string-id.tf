import {
  to = metal_deployment.db
  id = "rack1-04"
}
