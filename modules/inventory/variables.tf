variable "machines" {
  description = <<-EOT
    Machines by name, as an inventory has them. A missing value and null are the same.

    * `status`: its status in the inventory, in any letter case: see `statuses`.
    * `bmc_address`: IP address or host name of the BMC, also with a port or a prefix length, or a whole address as in `bmc.address` of `metal_host`.
    * `interfaces`: its interfaces by name. Leave out those of the BMC.
    * `primary_ips`: the addresses at which others reach the machine, at most one of each IP version, with or without prefix length. The
      first is `address` in the module fleet. Default routes and name servers come from the networks of these addresses. Default: all
      addresses.
    * `hostname`: default: its name in small letters. **Another one wipes the deployed machine.**
    * `extra`: what else the inventory knows, such as the rack and the serial number.
    * `bmc_username`, `bmc_password_key`, `hardware`, `role`, `resource_class`, `traits`, `description`: as in the module fleet. For
      `hardware`, the cards count in the alphabetical order of the names of their interfaces.

    An interface is

    * a network card, if it has a `mac`, in any usual notation. `bond` is the name of the interface that bonds this card with others;
    * a bond, if a card names it in `bond`;
    * a VLAN, if it has the number `vlan`. `parent` is the name of the card or bond.

    `addresses` have a prefix length, such as `203.0.113.21/24`. Interfaces without addresses are configured only if an interface
    with addresses needs them. A machine without addresses gets no network data, and uses DHCP. The module knows no other kinds: leave
    out loopbacks and bridges.
  EOT
  type = map(object({
    status           = optional(string, "active")
    bmc_address      = optional(string)
    bmc_username     = optional(string)
    bmc_password_key = optional(string)
    primary_ips      = optional(list(string), [])
    hostname         = optional(string)
    hardware         = optional(string)
    role             = optional(string)
    resource_class   = optional(string)
    traits           = optional(set(string))
    description      = optional(string)
    extra            = optional(map(string), {})
    interfaces = optional(map(object({
      mac       = optional(string)
      bond      = optional(string)
      parent    = optional(string)
      vlan      = optional(number)
      mtu       = optional(number)
      addresses = optional(list(string), [])
    })), {})
  }))
  nullable = false
}

variable "networks" {
  description = <<-EOT
    What the machines need to know of networks, by subnet, such as `203.0.113.0/24`. `gateway` is the router of the default route, and
    `routes` are further routes, each with `to` and `via`. An inventory may list more networks than the machines use.
    If it lists any, the primary addresses of each machine must be in one, with its prefix length.
  EOT
  type = map(object({
    gateway = optional(string)
    dns     = optional(list(string), [])
    search  = optional(list(string), [])
    routes  = optional(list(object({ to = string, via = string })), [])
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for subnet, _ in var.networks : can(cidrsubnet(subnet, 0, 0))])
    error_message = "networks has keys that are not subnets: ${join(", ", [for subnet, _ in var.networks : subnet if !can(cidrsubnet(subnet, 0, 0))])}."
  }

  validation {
    condition = alltrue(flatten([
      for subnet, network in var.networks : [
        for router in compact(concat([network.gateway], network.routes[*].via)) :
        try(startswith(lower(router), "fe80:") || cidrsubnet("${router}/${split("/", subnet)[1]}", 0, 0) == cidrsubnet(subnet, 0, 0), false)
      ]
    ]))
    error_message = "networks has routers outside their subnets: ${join(", ", flatten([
      for subnet, network in var.networks : [
        for router in compact(concat([network.gateway], network.routes[*].via)) :
        "${router} of ${subnet}" if !try(startswith(lower(router), "fe80:") || cidrsubnet("${router}/${split("/", subnet)[1]}", 0, 0) == cidrsubnet(subnet, 0, 0), false)
      ]
    ]))}."
  }
}

variable "statuses" {
  description = <<-EOT
    What a machine with a status becomes: `host`, `maintenance` (a host in maintenance, and what runs on the machine stays), or `none`. The keys
    are in small letters. **A host whose machine gets a status of `none` is destroyed, and its machine is undeployed.**
    Default: `active` and `staged` are `host`, `failed`, `offline` and `decommissioning` are `maintenance`, `planned` and `inventory` are `none`.
  EOT
  type        = map(string)
  nullable    = false
  default = {
    active          = "host"
    staged          = "host"
    failed          = "maintenance"
    offline         = "maintenance"
    decommissioning = "maintenance"
    planned         = "none"
    inventory       = "none"
  }

  validation {
    condition     = alltrue([for status, use in var.statuses : contains(["host", "maintenance", "none"], use) && status == lower(status)])
    error_message = "statuses must map names in small letters to \"host\", \"maintenance\" or \"none\"."
  }
}

variable "bmc_address_format" {
  description = "Makes `bmc.address` of `metal_host` of an address that has no scheme: `%s` is the IP address or host name."
  type        = string
  default     = "redfish-virtualmedia://%s"
  nullable    = false

  validation {
    condition     = can(regex("^[^%]*%s[^%]*$", var.bmc_address_format))
    error_message = "bmc_address_format must have %s once, such as \"redfish-virtualmedia://%s/redfish/v1/Systems/1\"."
  }
}

variable "static_addresses" {
  description = "Whether the machines have the addresses of their interfaces in their network data. With false, all of them use DHCP. **A change rebuilds machines**, unless their role has `on_change = \"ignore\"`."
  type        = bool
  default     = true
  nullable    = false
}

variable "bond" {
  description = "How all bonds work: `mode`, `lacp_rate` and `xmit_hash_policy` as in the function `network_data`."
  type = object({
    mode             = optional(string, "802.3ad")
    lacp_rate        = optional(string)
    xmit_hash_policy = optional(string)
  })
  default  = {}
  nullable = false
}

variable "min_hosts" {
  description = "An inventory with fewer hosts is refused. An answer that lacks machines, for example because a token has lost a right, would destroy their hosts."
  type        = number
  default     = 1
  nullable    = false
}
