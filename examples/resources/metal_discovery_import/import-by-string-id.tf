import {
  to = metal_discovery_import.rack12
  id = "rack12"
}
