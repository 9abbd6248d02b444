package conductor

// RAIDProperties are the properties of logical disks (ironic/drivers/raid_config_schema.json).
var RAIDProperties = []string{
	"raid_level", "size_gb", "volume_name", "is_root_volume", "share_physical_disks", "disk_type", "interface_type",
	"number_of_physical_disks", "controller", "physical_disks",
}

// DriverProperties are properties of driver_info, by driver.
var DriverProperties = map[string][]string{
	"fake-hardware": {"B1", "B2"},
	"ipmi": {
		"ipmi_address", "ipmi_bridging", "ipmi_cipher_suite", "ipmi_disable_boot_timeout", "ipmi_force_boot_device", "ipmi_hex_kg_key",
		"ipmi_local_address", "ipmi_password", "ipmi_port", "ipmi_priv_level", "ipmi_protocol_version", "ipmi_target_address",
		"ipmi_target_channel", "ipmi_terminal_port", "ipmi_transit_address", "ipmi_transit_channel", "ipmi_username",
	},
	"redfish": redfishProperties,
	"idrac":   redfishProperties,
}

var redfishProperties = []string{
	"redfish_address", "redfish_auth_type", "redfish_password", "redfish_system_id", "redfish_username", "redfish_verify_ca",
}

// AgentProperties are those of the deploy and boot interfaces.
var AgentProperties = []string{
	"agent_verify_ca", "deploy_forces_oob_reboot", "deploy_kernel", "deploy_ramdisk", "force_persistent_boot_device",
	"image_download_source", "image_http_proxy", "image_https_proxy", "image_no_proxy", "kernel_append_params", "rescue_kernel",
	"rescue_ramdisk",
}
