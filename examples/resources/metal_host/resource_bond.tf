resource "metal_host" "rack2_03" {
  name   = "rack2-03"
  driver = "fake-hardware"
  port_groups = {
    bond0 = { mode = "802.3ad", properties = { miimon = "100" } }
  }
  ports = {
    "52:54:00:02:00:04" = { port_group = "bond0" }
    "52:54:00:02:00:05" = { port_group = "bond0", pxe_enabled = false }
  }
  network_data = jsonencode({
    links    = [{ id = "eno1", type = "phy", ethernet_mac_address = "52:54:00:02:00:04" }]
    networks = [{ id = "prov", type = "ipv4", link = "eno1", network_id = "prov", ip_address = "192.0.2.50", netmask = "255.255.255.0" }]
    services = [{ type = "dns", address = "192.0.2.1" }]
  })
}
