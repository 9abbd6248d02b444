import {
  to = metal_host.rack2_01
  identity = {
    id = "0a3ee9f1-6f0b-4d1c-9a54-3f4f0c6f1f3e"
  }
}
