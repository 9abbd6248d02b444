variable "csv" {
  description = <<-EOT
    Text of a CSV file with one machine a line, such as `file("machines.csv")`. The column `name` is required; the others are the
    attributes of `machines`, except `driver_info` and `network_data`. Separate several MAC addresses or traits with spaces. An
    empty cell means the default. White space around cells, empty lines, and the letter case of `TRUE` do not matter.
  EOT
  type        = string
  default     = null

  validation {
    condition     = var.csv == null || can(csvdecode(var.csv)[0].name) || can(csvdecode(trimprefix(var.csv, "\ufeff"))[0].name)
    error_message = "csv must be the text of a CSV file, such as file(\"machines.csv\"): commas separate the cells, the first line has the names of the columns, one of these is \"name\", and at least one machine follows."
  }

  validation {
    condition     = length(setsubtract(try(keys(csvdecode(trimprefix(var.csv, "\ufeff"))[0]), []), concat(["name"], local.columns))) == 0
    error_message = "csv has columns that this module does not know: ${join(", ", setsubtract(try(keys(csvdecode(trimprefix(var.csv, "\ufeff"))[0]), []), concat(["name"], local.columns)))}. It knows name, ${join(", ", local.columns)}."
  }

  validation {
    condition     = alltrue([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : trimspace(try(row.name, "?")) != "" || trimspace(join("", values(row))) == ""])
    error_message = "csv has a line without a name."
  }

  validation {
    condition     = length(distinct(compact([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : trimspace(try(row.name, ""))]))) == length(compact([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : trimspace(try(row.name, ""))]))
    error_message = "csv has two lines with the same name."
  }

  validation {
    condition     = alltrue([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : contains(["", "true", "false"], lower(trimspace(try(row.maintenance, ""))))])
    error_message = "csv: maintenance must be true or false, in any letter case, or empty."
  }

  validation {
    condition     = alltrue([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : trimspace(try(row.bmc_password_version, "")) == "" || can(tonumber(trimspace(try(row.bmc_password_version, ""))))])
    error_message = "csv: bmc_password_version must be a number, or empty."
  }
}

variable "machines" {
  description = <<-EOT
    Machines by name, in addition to those of `csv`. A machine needs `bmc_address` or `driver`; all else is optional.

    * `bmc_address`, `bmc_username`: as `bmc.address` and `bmc.username` of `metal_host`.
    * `bmc_password_version`: raise it when the password of this machine has changed. Default: the variable of that name.
    * `macs`: MAC addresses of the network cards.
    * `role`: the key in `roles` of what the machine runs.
    * `hostname`: host name of the deployed machine. Default: its name. **A change wipes the machine.**
    * `address`: how you reach the machine once it is deployed. Only outputs contain it.
    * `network_data`: network settings in OpenStack's format, as JSON, for the machine's config drive.
    * `maintenance`: true takes the machine out of service.
    * `driver`, `driver_info`, `resource_class`, `traits`, `description`, `target_state`: as in `metal_host`.
  EOT
  type = map(object({
    bmc_address          = optional(string)
    bmc_username         = optional(string)
    bmc_password_version = optional(number)
    driver               = optional(string)
    driver_info          = optional(map(string))
    macs                 = optional(list(string), [])
    resource_class       = optional(string)
    traits               = optional(set(string))
    role                 = optional(string)
    hostname             = optional(string)
    address              = optional(string)
    network_data         = optional(string)
    description          = optional(string)
    target_state         = optional(string)
    maintenance          = optional(bool)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(setintersection(keys(var.machines), compact([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : trimspace(try(row.name, ""))]))) == 0
    error_message = "These machines are in csv and in machines: ${join(", ", setintersection(keys(var.machines), compact([for row in try(csvdecode(trimprefix(var.csv, "\ufeff")), []) : trimspace(try(row.name, ""))])))}."
  }
}

variable "defaults" {
  description = <<-EOT
    Settings of machines that have none of their own, as in `metal_host`. `target_state` is `available`: new machines are cleaned,
    **which erases what the cleaning steps of the site erase**. `automated_clean = false` keeps their disks, then and when a
    deployment is destroyed. With `on_failure = "warn"` a host that cannot be prepared holds up no other.
  EOT
  type = object({
    bmc_username        = optional(string)
    bmc_verify_ca       = optional(bool)
    driver              = optional(string)
    driver_info         = optional(map(string))
    hardware_interfaces = optional(map(string))
    resource_class      = optional(string, "baremetal")
    traits              = optional(set(string), [])
    capabilities        = optional(map(string))
    root_device         = optional(map(string))
    target_state        = optional(string, "available")
    automated_clean     = optional(bool)
    inspect             = optional(bool, false)
    on_destroy          = optional(string)
    on_failure          = optional(string, "warn")
  })
  default  = {}
  nullable = false
}

variable "roles" {
  description = <<-EOT
    What the machines run, by role. Without `count`, all machines with this `role` run it. With `count`, Ironic reserves that many
    machines by `resource_class` and `traits`, and they are named after the role: `web-0`, `web-1` and so on.

    * `user_data`: for cloud-init. Secrets belong in the variable `user_data_wo`; raise `user_data_wo_version` to send it again.
    * `rollout`: as in `metal_deployment`, for all machines of the role.
    * `ready_check`: a change is done when the machine accepts connections at its `address` and this TCP `port`. Not with `count`: Ironic
      chooses the machines.
    * `image`, `on_change`, `protected`, `power_state`, `rebuild_triggers`, `restart_triggers`, `on_destroy`: as in `metal_deployment`.
      **A change of `image` or user data wipes the machines of the role**, unless `on_change` says otherwise.
  EOT
  type = map(object({
    count          = optional(number)
    resource_class = optional(string)
    traits         = optional(set(string))
    image = object({
      url         = string
      checksum    = optional(string)
      disk_format = optional(string)
      type        = optional(string)
      kernel      = optional(string)
      ramdisk     = optional(string)
      root_gb     = optional(number)
      swap_mb     = optional(number)
    })
    user_data            = optional(string)
    user_data_wo_version = optional(number)
    on_change            = optional(string)
    protected            = optional(bool)
    power_state          = optional(string)
    rebuild_triggers     = optional(map(string))
    restart_triggers     = optional(map(string))
    on_destroy           = optional(string)
    ready_check = optional(object({
      port       = number
      timeout    = optional(string)
      stable_for = optional(string)
    }))
    rollout = optional(object({
      group           = optional(string)
      max_unavailable = optional(number)
      pause           = optional(string)
      canary          = optional(number)
      max_failures    = optional(number)
    }))
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for role in values(var.roles) : role.count == null ? role.resource_class == null && role.traits == null : role.resource_class != null && try(role.count >= 0 && floor(role.count) == role.count, false)])
    error_message = "A role with count needs resource_class, and a count of 0 or more. A role without count runs on the machines that name it, and has neither resource_class nor traits."
  }

  validation {
    condition     = alltrue([for role in values(var.roles) : role.count == null || role.ready_check == null])
    error_message = "A role with count has no ready_check: the addresses of its machines are not known before Ironic has chosen them."
  }

  validation {
    condition     = alltrue([for role in values(var.roles) : role.user_data == null || role.user_data_wo_version == null])
    error_message = "A role has either user_data, or user_data_wo_version and its text in user_data_wo."
  }
}

variable "bmc_password" {
  description = "Password of the BMCs. It is in no plan and no state."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true
}

variable "bmc_passwords" {
  description = "Passwords of single BMCs by name of the machine, in place of `bmc_password`. They are in no plan and no state."
  type        = map(string)
  default     = {}
  ephemeral   = true
  sensitive   = true
}

variable "bmc_password_version" {
  description = "Raise it when passwords of BMCs have changed, so that Ironic gets them again."
  type        = number
  default     = 1
  nullable    = false
}

variable "user_data_wo" {
  description = "User data with secrets, by role. It is in no plan and no state, and is sent when `user_data_wo_version` of the role changes."
  type        = map(string)
  default     = {}
  ephemeral   = true
  sensitive   = true
}
