import {
  to = metal_deployment.db
  identity = {
    id = "8c0c1a52-1d2b-4e4b-9c0e-6a3b1c1f7d15"
  }
}
