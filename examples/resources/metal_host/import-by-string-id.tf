import {
  to = metal_host.rack2_01
  id = "rack2-01"
}
