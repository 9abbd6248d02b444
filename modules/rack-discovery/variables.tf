variable "name" {
  description = "Name of the rack. The module writes it to each node that the rack takes. Another rack of the same name would take these over."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._~-]*$", var.name))
    error_message = "name must consist of letters, digits and . _ ~ -, such as \"rack12\"."
  }
}

variable "name_template" {
  description = <<-EOT
    How the machines are named: `prefix`, then the value of `hardware_details` (`serial-number`, `hostname`, `ip`, `boot-mac` or
    `provisioning-id`), then `suffix`. Default: the name of the rack, a hyphen and the serial number.
  EOT
  type        = map(string) # of an object, Terraform would drop unknown keys
  default     = {}
  nullable    = false
}

variable "name_style" {
  description = "Form of the names: `ironic` or `dns` (valid host names)."
  type        = string
  default     = "ironic"
  nullable    = false
}

variable "names" {
  description = "Names by serial number, MAC address or node UUID. They take precedence over `name_template`."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "filter" {
  description = "Only machines that match all of these belong to the rack, as in `metal_discovery_import`: regular expressions for `manufacturer`, `product` and `driver`, the network of the BMCs in `bmc_cidr`, and `min_cpus`, `min_memory_mb` and `min_disk_gb`. Set `bmc_cidr`: otherwise a forged machine gets the password of your BMCs."
  type        = map(string) # of an object, Terraform would drop unknown keys
  default     = null
}

variable "include" {
  description = "Delivery note: only machines with these serial numbers, MAC addresses or node UUIDs. An empty set takes no new machine. Machines that have a name stay. Default: all that match `filter`."
  type        = set(string)
  default     = null
}

variable "exclude" {
  description = "Serial numbers or boot MAC addresses of machines that leave the rack for good. **Their hosts are destroyed**, and they are not taken again."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "max_hosts" {
  description = "Largest number of machines that the rack takes."
  type        = number
  default     = null
}

variable "on_collision" {
  description = "What happens if two machines would have the same name: `skip`, `append-mac` or `error`."
  type        = string
  default     = "skip"
  nullable    = false
}

variable "bmc" {
  description = "How Ironic reaches the BMCs. `%s` in `address` stands for the address that discovery has found."
  type = object({
    address   = optional(string, "redfish-virtualmedia://%s/redfish/v1/Systems/1")
    username  = optional(string)
    verify_ca = optional(bool)
  })
  default  = {}
  nullable = false

  validation {
    condition     = length(split("%s", var.bmc.address)) == 2
    error_message = "bmc.address must have %s once, where the address of the BMC goes, such as \"ipmi://%s\"."
  }
}

variable "bmc_password" {
  description = "Password of the BMCs: the one that the rack was delivered with. It is in no plan and no state."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true
}

variable "bmc_password_version" {
  description = "Change it when the password has changed, so that Ironic gets it again: a number, a date, or the version of the secret in a vault."
  type        = string
  default     = "1"
  nullable    = false
}

variable "power_control" {
  description = "`agent`: Ironic uses its agent to prepare machines for which discovery has found no BMC. Otherwise the module leaves them out, and `without_bmc` lists them. With `filter.bmc_cidr`, it never takes them, and `pending` lists them. If you deploy them, set `on_destroy = \"forget\"` in `host_settings`: Ironic cannot remove a deployed node without a BMC."
  type        = string
  default     = null

  validation {
    condition     = var.power_control == null || var.power_control == "agent"
    error_message = "power_control must be \"agent\" or null."
  }
}

variable "host_settings" {
  description = "What all hosts of the rack have, as in `metal_host`. With `target_state = \"available\"` Ironic cleans them, **which erases what the cleaning steps of the site erase**. With `on_failure = \"warn\"` a host that cannot be prepared holds up no other."
  type = object({
    resource_class = optional(string, "baremetal")
    traits         = optional(set(string))
    capabilities   = optional(map(string))
    root_device    = optional(map(string))
    driver_info    = optional(map(string))
    hardware_interfaces = optional(object({
      bios       = optional(string)
      boot       = optional(string)
      console    = optional(string)
      deploy     = optional(string)
      firmware   = optional(string)
      inspect    = optional(string)
      management = optional(string)
      network    = optional(string)
      power      = optional(string)
      raid       = optional(string)
      rescue     = optional(string)
      storage    = optional(string)
      vendor     = optional(string)
    }))
    description  = optional(string)
    target_state = optional(string, "manageable")
    on_destroy   = optional(string)
    on_failure   = optional(string, "warn")
  })
  default  = {}
  nullable = false
}
