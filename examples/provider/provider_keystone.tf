# Credentials, region and so on are those of "site-a" in clouds.yaml. Ironic's URL comes from the service catalog.
provider "metal" {
  cloud = "site-a"

  api_timeout   = "5m" # wait for an Ironic that is just starting
  poll_interval = "15s"
  provisioning_limit = {
    max_concurrent = 40 # operations in progress at once; with terraform apply -parallelism=40
  }
}
