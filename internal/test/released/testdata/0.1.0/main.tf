# One of each resource. The machines are a fake Ironic's and a fake appliance's; endpoints come from the environment.

terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" {
  poll_interval  = "200ms"
  hardware_drift = "warn"
}

variable "secret" {
  type      = string
  ephemeral = true
}

variable "first" { # a rescue needs something deployed, so there are two applies
  type    = bool
  default = false
}

resource "metal_host" "bmc" {
  name        = "r1-01"
  description = "in the first rack"
  bmc = {
    address             = "redfish-virtualmedia://198.18.1.1/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.secret
    password_wo_version = "1"
    verify_ca           = false
  }
  automated_clean     = true
  bios_settings       = { BootMode = "Uefi" }
  boot_mode           = "uefi"
  capabilities        = { rack = "1" }
  driver_info         = { deploy_kernel = "http://images.test/ipa.kernel", deploy_ramdisk = "http://images.test/ipa.initramfs" }
  extra               = { rack = "1", unit = 7 }
  hardware_changes    = { on_active = "service", rollout = { group = "rack1", max_unavailable = 1, pause = "1s" } }
  hardware_drift      = "plan"
  hardware_interfaces = { deploy = "direct", rescue = "agent" }
  inspect             = true
  inspect_triggers    = { n = "1" }
  lessee              = "tenant"
  maintenance         = false
  network_data = jsonencode({
    links    = [{ id = "eno1", type = "phy", ethernet_mac_address = "52:54:00:01:00:01" }]
    networks = [{ id = "prov", type = "ipv4", link = "eno1", network_id = "prov", ip_address = "192.0.2.50", netmask = "255.255.255.0" }]
    services = [{ type = "dns", address = "192.0.2.1" }]
  })
  on_destroy  = "delete"
  on_failure  = "warn"
  owner       = "operators"
  port_groups = { bond0 = { mode = "802.3ad", mac = "52:54:00:01:00:01", properties = { miimon = "100" }, standalone_ports = true } }
  ports = {
    "52:54:00:01:00:01" = {
      port_group            = "bond0"
      local_link_connection = { switch_id = "0a:1b:2c:3d:4e:5f", port_id = "Ethernet1/17", switch_info = "leaf1" }
      name                  = "r1-01-eno1"
      pxe_enabled           = true
      physical_network      = "physnet1"
      description           = "left"
      vendor                = "Example"
      category              = "fast"
    }
    "52:54:00:01:00:02" = { port_group = "bond0", pxe_enabled = false, physical_network = "physnet1", extra_json = jsonencode({ slot = 1 }) }
  }
  power_off_mode     = "soft"
  properties         = { cpus = "32", memory_mb = "131072", local_gb = "893", cpu_arch = "x86_64" }
  qualification      = { steps = [{ interface = "deploy", step = "burnin_cpu" }], parameters = jsonencode({ agent_burnin_cpu_timeout = 60 }), timeout = "1h", valid_for = "36500d" }
  replaced           = { part = "mainboard", on = "2026-11-27" }
  resource_class     = "bmc"
  retired            = false
  root_device        = { serial = "S1" }
  secure_boot        = false
  shard              = "s1"
  skip_block_devices = [{ wwn = "0x5000c500a0b1c2d3" }]
  target_state       = "available"
  timeouts           = { create = "2h", update = "2h", delete = "1h" }
  traits             = ["CUSTOM_RACK1"]
}

resource "metal_host" "ipmi" {
  name           = "r1-02"
  bmc            = { address = "ipmi://198.18.1.2", username = "root", password = "stored" }
  resource_class = "iso"
  power_state    = "on"
  hardware_interfaces = {
    boot   = "ipxe"
    deploy = "ramdisk"
  }
  ports        = { "52:54:00:01:00:03" = {} }
  target_state = "available"
}

resource "metal_host" "plain" {
  for_each = toset(["r1-03", "r1-04", "r1-05"])

  name           = each.key
  driver         = "fake-hardware"
  resource_class = "plain"
  extra          = { rack = each.key }
  traits         = ["CUSTOM_RACK1", "HW_CPU_X86_AVX2"]
  target_state   = "available"
}

resource "metal_host" "running" {
  name               = "r1-06"
  driver             = "fake-hardware"
  driver_info        = { note = "x" }
  maintenance        = true
  maintenance_reason = "waits for its card"
  retired            = true
  retired_reason     = "too old"
  parent_node        = metal_host.bmc.id
  disable_power_off  = true
}

resource "metal_host" "disks" {
  name = "r1-08"
  bmc = {
    address             = "redfish-virtualmedia://198.18.1.9/redfish/v1/Systems/1"
    username            = "root"
    password_wo         = var.secret
    password_wo_version = "1"
  }
  driver_info_wo         = { redfish_verify_ca = var.secret == "" ? "x" : "false" }
  driver_info_wo_version = "1"
  console                = "disabled"
  firmware               = { bmc = { url = "http://images.test/bmc.bin" } }
  hardware_interfaces    = { deploy = "direct", rescue = "agent" }
  ports                  = { "52:54:00:01:00:09" = {} }
  raid                   = { volumes = [{ level = "1", size_gb = "MAX", root = true }], delete_existing = true }
  resource_class         = "disks"
  owner                  = "operators"
  target_state           = "available"
}

resource "metal_allocation" "disks" {
  name           = "disks"
  resource_class = "disks"
  owner          = "operators"
  depends_on     = [metal_host.disks]
}

resource "metal_deployment" "disks" {
  node_id       = metal_allocation.disks.node_id
  allocation_id = metal_allocation.disks.id
  image         = { url = "http://images.test/debian.qcow2", checksum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
  vifs          = [{ id = "5d3f4d9e-8c1f-4b0e-9d0a-2f3b8a0e6c11" }]
  rescue        = var.first ? null : { password_wo = var.secret, password_wo_version = "1" }
}

resource "metal_allocation" "bmc" {
  name              = "bmc"
  resource_class    = "bmc"
  candidate_nodes   = [metal_host.bmc.id]
  traits            = ["CUSTOM_RACK1"]
  extra             = { team = "a" }
  on_unusable       = "replace"
  wait_for_capacity = "1m"
  require           = { cpu_arch = "x86_64", min_cpus = 16, capabilities = { rack = "1" } }
  timeouts          = { create = "10m" }
}

resource "metal_deployment" "bmc" {
  node_id       = metal_allocation.bmc.node_id
  allocation_id = metal_allocation.bmc.id
  image = {
    url      = "http://images.test/debian.qcow2"
    checksum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  }
  config_drive = {
    hostname             = "bmc"
    meta_data            = jsonencode({ role = "db" })
    network_data         = jsonencode({ links = [], networks = [], services = [] })
    user_data_wo         = var.secret
    user_data_wo_version = "1"
  }
  capabilities     = { boot_mode = "uefi" }
  deploy_steps     = [{ interface = "bios", step = "apply_configuration", priority = 150, args = jsonencode({ settings = [] }) }]
  instance_info    = { key = "value" }
  instance_name    = "db"
  max_attempts     = 2
  max_nodes        = 2
  on_change        = "replace"
  on_destroy       = "undeploy"
  on_failure       = "quarantine"
  power_off_mode   = "soft"
  power_state      = "on"
  protected        = true
  rebuild_triggers = { n = "1" }
  restart_triggers = { n = "1" }
  rollout          = { group = "db", canary = 1, max_failures = 1 }
  root_device      = { serial = "S1" }
  traits           = ["CUSTOM_RACK1"]
  timeouts         = { create = "2h", update = "2h", delete = "1h" }
}

resource "metal_deployment" "iso" {
  node_id = metal_host.ipmi.id
  live_iso = {
    url            = "http://images.test/coreos.iso"
    version        = "1"
    built_at       = "2026-01-01T00:00:00Z"
    contains       = { network = "n1", infra_env = "e1" }
    host_content   = { network = "n1" }
    shared_content = { infra_env = "e1" }
    quiet_period   = "0s"
    reboot_policy  = "affected"
  }
}

resource "metal_allocation_group" "plain" {
  name            = "plain"
  size            = 2
  resource_class  = "plain"
  traits          = ["CUSTOM_RACK1"]
  candidate_nodes = [for host in metal_host.plain : host.name]
  max_per_domain  = 1
  spread_by       = "extra.rack"
  replace_members = { "plain-0" = "1" }
  require         = { exclude = ["r9-99"] }
}

resource "metal_deployment" "plain" {
  for_each = metal_allocation_group.plain.members

  node_id       = each.value.node_id
  allocation_id = each.value.id
  image         = { url = "http://images.test/part.raw", checksum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", type = "partition", root_gb = 20, swap_mb = 1024, kernel = "http://images.test/k", ramdisk = "http://images.test/r" }
}

resource "metal_deployment" "adopted" {
  node_id    = metal_host.adopted.id
  adopt      = true
  on_destroy = "forget"
}

resource "metal_host" "adopted" {
  name           = "r1-07"
  driver         = "fake-hardware"
  resource_class = "running"
}

resource "metal_discovery_import" "rack" {
  name              = "rack"
  name_template     = { prefix = "r2-", hardware_details = "serial-number" }
  filter            = { manufacturer = "^Example" }
  exclude           = ["NONE"]
  max_hosts         = 4
  include           = ["RK000000"]
  names             = { RK000000 = "r2-first" }
  name_style        = "ironic"
  discovered_before = "2100-01-01T00:00:00Z"
  on_collision      = "skip"
}

resource "metal_deploy_template" "raid" {
  name = "CUSTOM_RAID1"
  steps = [{
    interface = "raid"
    step      = "apply_configuration"
    priority  = 90
    args      = jsonencode({ raid_config = { logical_disks = [{ size_gb = "MAX", raid_level = "1", is_root_volume = true }] } })
  }]
}

resource "metal_runbook" "bmc" {
  name        = "bmc-maintenance"
  description = "Updates the firmware of the BMC"
  traits      = ["CUSTOM_RACK1"]
  steps       = [{ interface = "firmware", step = "update", args = jsonencode({ settings = [] }) }]
}

resource "metal_inspection_rule" "gpu" {
  description = "GPU nodes"
  priority    = 10
  conditions  = [{ op = "contains", args = jsonencode({ value = "{inventory[system_vendor][product_name]}", regex = "GPU" }) }]
  actions     = [{ op = "add-trait", args = jsonencode({ name = "CUSTOM_GPU" }) }]
}

data "metal_oneview_server_hardware" "bay1" {
  name = "Encl1, bay 1"
}

data "metal_oneview_server_profile_template" "ironic" {
  name = "Ironic"
}

locals {
  bay1 = one(values(data.metal_oneview_server_hardware.bay1.servers))
}

resource "metal_host" "blade" {
  name = "blade-1"
  bmc  = { address = "redfish-virtualmedia://198.18.1.8/redfish/v1/Systems/1", username = "ironic", password_wo = var.secret, password_wo_version = "1" }
  driver_info = {
    server_hardware_uri = data.metal_oneview_server_hardware.bay1.uri
    dynamic_allocation  = true
  }
  capabilities = {
    server_hardware_type_uri    = local.bay1.server_hardware_type_uri
    enclosure_group_uri         = local.bay1.enclosure_group_uri
    server_profile_template_uri = data.metal_oneview_server_profile_template.ironic.uri
  }
  ports          = { (local.bay1.macs[0]) = {} }
  resource_class = "blade"
}

resource "metal_oneview_profile" "blade" {
  node_id = metal_host.blade.id
  name    = "blade-1"
}
