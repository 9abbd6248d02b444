terraform {
  required_version = ">= 1.8" # functions of providers
}

locals {
  addresses = {
    rack1-01 = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1"
    rack1-02 = "redfish-virtualmedia+http://bmc-02.example.com:8000/redfish/v1/Systems/1"
    rack1-03 = "ipmi://192.0.2.13"
  }
  bmcs = { for name, address in local.addresses : name => provider::metal::bmc(address) }
}

output "firewall" {
  description = "What Ironic must reach."
  value = { for name, bmc in local.bmcs : name => {
    host     = bmc.host
    protocol = bmc.driver == "ipmi" ? "udp" : "tcp"
    port     = bmc.port != null ? bmc.port : bmc.driver == "ipmi" ? 623 : bmc.transport == "http" ? 80 : 443
  } }
}
