package conductor

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

var raidLevels = []any{"JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"}

// RAIDFault returns why raid_config_schema.json refuses the logical disks of a target, "" if it accepts them.
func RAIDFault(target map[string]any) string {
	disks, _ := target["logical_disks"].([]any)
	for _, one := range disks {
		disk := api.Object(one)
		for _, key := range []string{"raid_level", "size_gb"} {
			if _, given := disk[key]; !given {
				return api.PyRepr(key) + " is a required property"
			}
		}
		for _, key := range api.SortedKeys(disk) {
			if !slices.Contains(RAIDProperties, key) {
				return "Additional properties are not allowed (" + api.PyRepr(key) + " was unexpected)"
			}
		}
		size, isText := disk["size_gb"].(string)
		number, _ := api.Number(disk["size_gb"])
		switch level := disk["raid_level"]; {
		case disk["physical_disks"] != nil && disk["controller"] == nil:
			return "'controller' is a dependency of 'physical_disks'"
		case !slices.Contains(raidLevels, level):
			return api.PyRepr(level) + " is not one of " + api.PyRepr(raidLevels)
		case isText && size != "MAX":
			return api.PyRepr(size) + " is not one of ['MAX']"
		case number < 0:
			return api.PyRepr(disk["size_gb"]) + " is less than the minimum of 0"
		}
	}
	return ""
}

// RAIDProperties are the properties of logical disks (ironic/drivers/raid_config_schema.json).
var RAIDProperties = []string{
	"raid_level", "size_gb", "volume_name", "is_root_volume", "share_physical_disks", "disk_type", "interface_type",
	"number_of_physical_disks", "controller", "physical_disks",
}

// DriverProperties are properties of driver_info, by driver.
var DriverProperties = map[string][]string{
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
