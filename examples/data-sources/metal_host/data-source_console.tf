# Each refresh of this data source asks for the console: read the page first.
data "metal_host" "console" {
  name    = "rack1-01"
  include = ["console"]
}

output "console" {
  value     = data.metal_host.console.console.url # null while the console is not enabled
  sensitive = true
}
