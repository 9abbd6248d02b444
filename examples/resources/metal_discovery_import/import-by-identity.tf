import {
  to = metal_discovery_import.rack12
  identity = {
    id = "rack12"
  }
}
