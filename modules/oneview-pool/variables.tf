variable "server_profile_template" {
  description = "Name of the server profile template. All servers that it fits belong to the pool, including those that OneView users have now."
  type        = string
  nullable    = false
}

variable "name_prefix" {
  description = "Prefix of the names of the hosts. The serial number of the server follows, in lower case."
  type        = string
  default     = "pool-"
  nullable    = false
}

variable "include" {
  description = "Serial numbers of the servers that belong to the pool. Default: all that the template fits."
  type        = set(string)
  default     = null
}

variable "exclude" {
  description = "Serial numbers of servers that do not belong to the pool."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "bmc" {
  description = "How Ironic reaches the iLOs. `%s` in `address` stands for the address that OneView knows."
  type = object({
    address   = optional(string, "redfish-virtualmedia://%s/redfish/v1/Systems/1")
    username  = optional(string)
    verify_ca = optional(bool)
  })
  default  = {}
  nullable = false

  validation {
    condition     = length(split("%s", var.bmc.address)) == 2
    error_message = "bmc.address must have %s once, where the address of the iLO goes, such as \"redfish://%s\"."
  }
}

variable "bmc_password" {
  description = "Password of the iLOs. It is in no plan and no state."
  type        = string
  nullable    = false
  ephemeral   = true
  sensitive   = true
}

variable "bmc_password_version" {
  description = "Change it when the password has changed, so that Ironic gets it again: a number, a date, or the version of the secret in a vault."
  type        = string
  default     = "1"
  nullable    = false
}

variable "host_settings" {
  description = "What all hosts of the pool have, as in `metal_host`. With `target_state = \"available\"` Ironic cleans them, with a temporary server profile, **which erases what the cleaning steps of the site erase**. With `on_failure = \"warn\"` a host that cannot be prepared holds up no other."
  type = object({
    resource_class = optional(string, "oneview")
    traits         = optional(set(string))
    driver_info    = optional(map(string), {})
    target_state   = optional(string, "available")
    on_failure     = optional(string, "warn")
  })
  default  = {}
  nullable = false
}

variable "deployments" {
  description = <<-EOT
    What runs in the pool, by name. Ironic chooses a host for each by `traits`; it has a server profile for as long as the
    deployment lasts. `image`, `on_change` and `protected` are those of `metal_deployment`. **A change of `image` or `user_data`
    wipes the machine**, unless `on_change` says otherwise.
  EOT
  type = map(object({
    traits = optional(set(string))
    image = object({
      url         = string
      checksum    = optional(string)
      disk_format = optional(string)
    })
    user_data = optional(string)
    on_change = optional(string)
    protected = optional(bool)
  }))
  default  = {}
  nullable = false
}
