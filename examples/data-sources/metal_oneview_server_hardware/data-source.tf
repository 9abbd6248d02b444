# name, serial_number or mac
data "metal_oneview_server_hardware" "bay1" {
  name = "Encl1, bay 1"
}

output "bay1" {
  value = {
    uri   = data.metal_oneview_server_hardware.bay1.uri
    model = one(values(data.metal_oneview_server_hardware.bay1.servers)).model
  }
}
