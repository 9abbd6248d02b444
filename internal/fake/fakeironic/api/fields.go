package api

// InterfaceKinds are the kinds of interface in Ironic's order.
var InterfaceKinds = []string{
	"bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue", "storage", "vendor",
}

// nodeField is an attribute of a node in the API.
type nodeField struct {
	Name  string
	Since int // first API version that has it
}

// NodeFields are the attributes of a node in the order of Ironic's answers.
var NodeFields = []nodeField{
	{"uuid", 1},
	{"created_at", 1},
	{"updated_at", 1},
	{"automated_clean", 47},
	{"bios_interface", 40},
	{"boot_interface", 31},
	{"boot_mode", 75},
	{"clean_step", 7},
	{"conductor_group", 46},
	{"console_enabled", 1},
	{"console_interface", 31},
	{"deploy_interface", 31},
	{"deploy_step", 44},
	{"description", 51},
	{"disable_power_off", 95},
	{"driver", 1},
	{"driver_info", 1},
	{"driver_internal_info", 3},
	{"extra", 1},
	{"fault", 42},
	{"firmware_interface", 86},
	{"health", 109},
	{"inspection_finished_at", 6},
	{"inspection_started_at", 6},
	{"inspect_interface", 31},
	{"instance_info", 1},
	{"instance_name", 104},
	{"instance_uuid", 1},
	{"last_error", 1},
	{"lessee", 65},
	{"maintenance", 1},
	{"maintenance_reason", 1},
	{"management_interface", 31},
	{"name", 5},
	{"network_data", 66},
	{"network_interface", 20},
	{"owner", 50},
	{"parent_node", 83},
	{"power_interface", 31},
	{"power_state", 1},
	{"properties", 1},
	{"protected", 48},
	{"protected_reason", 48},
	{"provision_state", 1},
	{"provision_updated_at", 1},
	{"raid_config", 12},
	{"raid_interface", 31},
	{"rescue_interface", 38},
	{"reservation", 1},
	{"resource_class", 21},
	{"retired", 61},
	{"retired_reason", 61},
	{"secure_boot", 75},
	{"service_step", 87},
	{"shard", 82},
	{"storage_interface", 33},
	{"target_power_state", 1},
	{"target_provision_state", 1},
	{"target_raid_config", 12},
	{"traits", 37},
	{"vendor_interface", 31},
	{"conductor", 49},
	{"allocation_uuid", 52},
	{"chassis_uuid", 1},
}

// NodeFieldSince returns the first API version that has the attribute.
func NodeFieldSince(name string) (since int, known bool) {
	for _, f := range NodeFields {
		if f.Name == name {
			return f.Since, true
		}
	}
	return 0, false
}

// SummaryFields are the fields of a list without details.
var SummaryFields = []string{"instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "name"}
