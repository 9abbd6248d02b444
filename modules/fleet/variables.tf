variable "csv" {
  description = <<-EOT
    Text of a CSV file with one machine a line, such as `file("machines.csv")`. The column `name` is required; the others are the
    attributes of `machines`, except `driver_info` and `network_data`. A column `extra.KEY`, such as `extra.rack`, is the value of
    KEY in `extra`. Separate several MAC addresses or traits with spaces. An empty cell means the default. White space around cells,
    empty lines, a byte order mark, and the letter case of `TRUE` and `FALSE` do not matter.
  EOT
  type        = string
  default     = null
}

variable "machines" {
  description = <<-EOT
    Machines by name, in addition to those of `csv`. A machine needs `bmc_address` or `driver`; all else is optional.

    * `bmc_address`, `bmc_username`: as `bmc.address` and `bmc.username` of `metal_host`.
    * `bmc_password_key`: the key of its password in `bmc_passwords`, such as a rack. Default: its name.
    * `bmc_password_version`: change it when the password of this machine has changed. Default: the variable of that name.
    * `macs`: MAC addresses of the network cards, in the order in which `hardware` counts them.
    * `hardware`: the key in `hardware` of the kind of machine. Default: that of `defaults`, then none.
    * `extra`: your own data, stored with the node, such as `rack`. `spread_by` of a group may use it.
    * `role`: the key in `roles` of what the machine runs.
    * `hostname`: host name of the deployed machine. Default: its name. **A change wipes the machine.**
    * `address`: how you reach the machine once it is deployed, for outputs and `ready_check`.
    * `network_data`: network settings in OpenStack's format, as JSON, for the machine's config drive.
    * `maintenance`: true: Ironic neither allocates nor deploys the machine.
    * `retired`: true: no group gets the machine any more. **A change to false cleans it.** To return a machine from quarantine, repair
      it and apply false; if the machine had a value before, apply true first.
    * `protected`: as in `roles`, for a machine that names its role. Default: that of the role.
    * `driver`, `driver_info`, `resource_class`, `traits`, `description`, `target_state`: as in `metal_host`.
  EOT
  type = map(object({
    bmc_address          = optional(string)
    bmc_username         = optional(string)
    bmc_password_key     = optional(string)
    bmc_password_version = optional(string)
    driver               = optional(string)
    driver_info          = optional(map(string))
    macs                 = optional(list(string), [])
    hardware             = optional(string)
    extra                = optional(map(string), {})
    resource_class       = optional(string)
    traits               = optional(set(string))
    role                 = optional(string)
    hostname             = optional(string)
    address              = optional(string)
    network_data         = optional(string)
    description          = optional(string)
    target_state         = optional(string)
    maintenance          = optional(bool)
    retired              = optional(bool)
    protected            = optional(bool)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = var.machines == null || length(local.csv_faults) == 0 # a validation must refer to its variable
    error_message = "csv, ${join("\ncsv, ", local.csv_faults)}"
  }

  validation {
    condition     = length(setintersection(keys(var.machines), keys(local.lines))) == 0
    error_message = "These machines are in csv and in machines: ${join(", ", setintersection(keys(var.machines), keys(local.lines)))}."
  }
}

variable "defaults" {
  description = <<-EOT
    Settings of machines that have none of their own, as in `metal_host`. `target_state` is `available`: new machines are cleaned,
    **which erases what the cleaning steps of the site erase**. `automated_clean = false` keeps their disks, then and when a
    deployment is destroyed. With `on_failure = "warn"` a host that cannot be prepared holds up no other. `hardware` is the kind of
    machines that name none, and `extra` is for all machines.
  EOT
  type = object({
    bmc_username    = optional(string)
    bmc_verify_ca   = optional(bool)
    driver          = optional(string)
    driver_info     = optional(map(string))
    hardware        = optional(string)
    extra           = optional(map(string), {})
    resource_class  = optional(string, "baremetal")
    traits          = optional(set(string), [])
    target_state    = optional(string, "available")
    automated_clean = optional(bool)
    inspect         = optional(bool, false)
    on_destroy      = optional(string)
    on_failure      = optional(string, "warn")
  })
  default  = {}
  nullable = false
}

variable "hardware_lock" {
  description = "Content of the lock file of `metal lock`, which has the models of `hardware`, such as `file(\"hardware.lock.json\")`."
  type        = string
  default     = null
}

variable "hardware" {
  description = <<-EOT
    Kinds of machines, by the name in `hardware` of a machine.

    * `port_groups`: the bonds of Ironic, by name. `cards` lists their network cards: 1 is the first of `macs`.
    * `pxe_cards`: the network cards that may boot, counted in the same way. Default: all.
    * `bios_settings`, `raid`, `firmware`, `boot_mode`, `secure_boot`: as in `metal_host`. **A change restarts the machine, and a
      change of `raid` destroys data**; on a deployed machine it waits, unless `hardware_changes` says otherwise.
    * `model`: the model of `hardware_lock` that the machines must be: `expect_hardware` of `metal_host`.
    * `qualification`: as in `metal_host`. **Its steps may erase disks.**
    * `hardware_changes`, `hardware_drift`, `hardware_interfaces`, `capabilities`, `root_device`: as in `metal_host`.
  EOT
  type = map(object({
    port_groups = optional(map(object({
      cards            = list(number)
      mode             = optional(string)
      properties       = optional(map(string))
      standalone_ports = optional(bool)
    })), {})
    pxe_cards     = optional(list(number))
    bios_settings = optional(map(string))
    raid = optional(object({
      volumes = list(object({
        level                    = string
        size_gb                  = string
        root                     = optional(bool)
        name                     = optional(string)
        controller               = optional(string)
        disk_type                = optional(string)
        interface_type           = optional(string)
        number_of_physical_disks = optional(number)
        physical_disks           = optional(set(string))
        share_physical_disks     = optional(bool)
      }))
      delete_existing = optional(bool)
    }))
    firmware = optional(map(object({
      url     = string
      version = optional(string)
    })))
    model = optional(string)
    qualification = optional(object({
      runbook    = optional(string)
      steps      = optional(list(object({ interface = string, step = string, args = optional(string) })))
      parameters = optional(string)
      valid_for  = optional(string)
      on_failure = optional(string)
      timeout    = optional(string)
    }))
    boot_mode   = optional(string)
    secure_boot = optional(bool)
    hardware_changes = optional(object({
      on_active       = optional(string)
      disable_ramdisk = optional(bool)
      rollout = optional(object({
        group           = optional(string)
        max_unavailable = optional(number)
        pause           = optional(string)
        canary          = optional(number)
        max_failures    = optional(number)
      }))
    }))
    hardware_drift = optional(string)
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
    capabilities = optional(map(string))
    root_device  = optional(map(string))
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for card in flatten([for kind in values(var.hardware) : concat(values(kind.port_groups)[*].cards, [coalesce(kind.pxe_cards, [])])]) : card >= 1 && floor(card) == card])
    error_message = "cards and pxe_cards count the network cards of a machine from 1: [1, 2] are the first two of macs."
  }

  validation {
    condition     = alltrue([for kind in values(var.hardware) : length(flatten(values(kind.port_groups)[*].cards)) == length(distinct(flatten(values(kind.port_groups)[*].cards)))])
    error_message = "A network card can be in one of the port_groups only."
  }
}

variable "roles" {
  description = <<-EOT
    What the machines run, by role. Without `group`, all machines with this `role` run it. With `group`, Ironic reserves machines for
    a `metal_allocation_group`, and they are named after the role: `web-0`, `web-1` and so on.

    * `group`: as in `metal_allocation_group`. `spread_by = "extra.rack"` spreads the members over the racks in the column
      `extra.rack`. `size` members get machines, or none does. **A new value in `replace_members` wipes that machine.**
    * `user_data`: for cloud-init. Secrets belong in the variable `user_data_wo`; change `user_data_wo_version` to send it again.
    * `ready_check`: a change is done when the machine accepts connections at its `address` and this TCP `port`. With `group`, every machine
      that Ironic may choose needs an `address`: its class, traits, `candidate_nodes` and `require.exclude` count.
    * `on_failure`, `max_nodes`: as in `metal_deployment`, with `group` only. `on_failure = "quarantine"` gives a member whose machine fails
      another one, in the next apply.
    * `image`, `on_change`, `on_destroy`, `max_attempts`, `protected`, `power_state`, `power_off_mode`, `rebuild_triggers`, `restart_triggers`,
      `rollout`: as in `metal_deployment`. **A change of `image` or user data wipes the machines of the role**, unless `on_change` says
      otherwise.
  EOT
  type = map(object({
    group = optional(object({
      size            = number
      resource_class  = string
      traits          = optional(set(string))
      candidate_nodes = optional(set(string))
      require = optional(object({
        min_cpus        = optional(number)
        min_memory_mb   = optional(number)
        min_disk_gb     = optional(number)
        min_nic_mbps    = optional(number)
        disk_type       = optional(string)
        cpu_arch        = optional(string)
        manufacturer    = optional(string)
        product         = optional(string)
        capabilities    = optional(map(string))
        cabling         = optional(bool)
        conductor_group = optional(string)
        exclude         = optional(set(string))
      }))
      spread_by         = optional(string)
      max_per_domain    = optional(number)
      wait_for_capacity = optional(string)
      replace_members   = optional(map(string))
    }))
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
    user_data_wo_version = optional(string)
    on_change            = optional(string)
    on_destroy           = optional(string)
    on_failure           = optional(string)
    max_attempts         = optional(number)
    max_nodes            = optional(number)
    protected            = optional(bool)
    power_state          = optional(string)
    power_off_mode       = optional(string)
    rebuild_triggers     = optional(map(string))
    restart_triggers     = optional(map(string))
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
    condition     = alltrue([for role in values(var.roles) : role.group != null || role.on_failure == null && role.max_nodes == null])
    error_message = "Only a role with group has on_failure and max_nodes: a machine that names its role has no other machine to turn to."
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
  description = "Passwords in place of `bmc_password`, by `bmc_password_key` or name of the machine. They are in no plan and no state."
  type        = map(string)
  default     = {}
  ephemeral   = true
  sensitive   = true
}

variable "bmc_password_version" {
  description = "Change it when passwords of BMCs have changed, so that Ironic gets them again."
  type        = string
  default     = "1"
  nullable    = false
}

variable "user_data_wo" {
  description = "User data with secrets, by role. It is in no plan and no state, and is sent when `user_data_wo_version` of the role changes."
  type        = map(string)
  default     = {}
  ephemeral   = true
  sensitive   = true
}
