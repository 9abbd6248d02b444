variable "iso" {
  description = <<-EOT
    The live ISO for all machines, as `live_iso` of `metal_deployment`.

    * `url`: where Ironic downloads it. `version`: identity of its content. Default: the URL up to the "?".
    * `shared_content`: what it has for all machines, as names with identities. A change restarts no machine.
    * `contains`: content that it was built with, for machines without `contains`. A machine whose content is missing waits.
    * `built_at`, `quiet_period`: when it was built, and how long it must have been unchanged.
  EOT
  type = object({
    url            = string
    version        = optional(string)
    shared_content = optional(map(string))
    contains       = optional(map(string))
    built_at       = optional(string)
    quiet_period   = optional(string)
  })
  nullable = false

  validation {
    condition     = can(regex("^[a-z]+://.", var.iso.url)) || var.iso.url == null
    error_message = "iso.url must be a URL that Ironic can download, such as \"http://images.example.com/site.iso\"."
  }
}

variable "machines" {
  description = <<-EOT
    The machines that run the ISO, by name of the node.

    * `node_id`: UUID of the node, such as `metal_host.NAME.id`: then the machine boots when the host is available.
    * `host_content`: what the ISO has for this machine only, as names with identities. **A change restarts the machine.**
    * `contains`: as in `iso`, for this machine.
    * `registered`: false means that the software in the ISO never came up, so any other ISO restarts the machine.
    * `installing`: true means that no ISO restarts the machine. Read it at each plan.
  EOT
  type = map(object({
    node_id      = string
    host_content = optional(map(string))
    contains     = optional(map(string))
    registered   = optional(bool)
    installing   = optional(bool)
  }))
  nullable = false
}

variable "reboot_policy" {
  description = "Which machines another ISO restarts: `affected` (those that it concerns), `always` (all), or `never`."
  type        = string
  default     = "affected"
  nullable    = false

  validation {
    condition     = contains(["affected", "always", "never"], var.reboot_policy)
    error_message = "reboot_policy must be \"affected\", \"always\" or \"never\"."
  }
}

variable "restart_now" {
  description = "Names of machines that restart if the ISO is another one, whether it concerns them or not. Use it to bring machines to the wanted ISO in groups. A machine that runs this ISO is not restarted."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(setsubtract(var.restart_now, keys(var.machines))) == 0
    error_message = "restart_now names machines that are not in machines: ${join(", ", setsubtract(var.restart_now, keys(var.machines)))}."
  }
}

variable "on_destroy" {
  description = "What happens to a machine that leaves `machines`: `undeploy` (Ironic also cleans it) or `forget` (it runs on)."
  type        = string
  default     = "undeploy"
  nullable    = false
}
