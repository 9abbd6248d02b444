package simulate_test

// never has what no scene plays, each with the reason. No reason is that a test of another kind exists, or that it is hard.
var never = map[string]string{
	"verb soft rebooting": "the provider never sends it: a soft restart is a soft power off and a power on, so that it is seen " +
		"whether the system has shut down",
	"data.metal_boot_status.hosts.booted_at": "read-only: time from a note that only live ISO deployments write, and nothing decides " +
		"by it",
	"data.metal_boot_status.hosts.boots":  "read-only: counter from the same note as booted_at",
	"data.metal_host.firmware.updated_at": "read-only: a time that Ironic reports and nothing decides by",
	"data.metal_host.inventory.disks.wwn": "read-only: a fact of the ramdisk, shown as it is; the disks of the fake " +
		"have none",
	"data.metal_host.inventory.disks.wwn_with_extension": "read-only: a fact of the ramdisk, shown as it is; the disks of the fake " +
		"have none",
	"data.metal_host.inventory.disks.wwn_vendor_extension": "read-only: a fact of the ramdisk, shown as it is; the disks of the fake " +
		"have none",
	"data.metal_host.inventory.interfaces.ipv4_address": "read-only: a fact of the ramdisk, shown as it is; the cards of the fake " +
		"have none after an inspection",
	"data.metal_host.inventory.interfaces.ipv6_address": "read-only: a fact of the ramdisk, shown as it is; the cards of the fake " +
		"have none after an inspection",
	"data.metal_host.neighbors.port_description": "read-only: text from a switch, shown as it is; the switch of the fake sends none",
	"data.metal_host.validation.reason":          "read-only: Ironic's words about an interface; the machines of the scenes are valid",
	"data.metal_hosts.chassis_id": "not played yet: a filter of a GET; the only chassis of a site are the locks, by which the " +
		"simulator tells that a run has left one",
	"list.metal_deployment.chassis_id": "not played yet: as data.metal_hosts.chassis_id",
	"list.metal_host.chassis_id":       "not played yet: as data.metal_hosts.chassis_id",
	"data.metal_oneview_server_profile_template.description": "read-only: text of a template, shown as it is; that of the fake has " +
		"none",
	"metal_allocation.last_error": "read-only: what Ironic says of an allocation in state error, which only a kill leaves in a state, " +
		"and which the next apply replaces",
	"metal_allocation_group.leftovers": "read-only: allocations that a killed run has left; TestKill_everyMomentOfAGroup leaves them, " +
		"and checks that the next apply removes them",
	"metal_deployment.last_error": "read-only: what Ironic says of a failed deployment; scenes with failed work have it, and calm " +
		"ones do not",
	"metal_host.fault": "read-only: what Ironic says of a node whose BMC does not answer; data.metal_hosts.hosts.fault is played",
	"metal_deployment.ready_check.http.cacert_file": "sends nothing to Ironic: a file by which the check trusts a machine; virtual " +
		"time has no TLS",
	"provider.cacert_file": "sends nothing: how the connection to Ironic is trusted; the line of the simulator has no sockets, so no " +
		"TLS",
	"provider.client_cert_file": "sends nothing: how the client proves itself on the connection; the line of the simulator has no " +
		"sockets, so no TLS",
	"provider.client_key_file":     "sends nothing: as client_cert_file",
	"provider.insecure":            "sends nothing: as cacert_file",
	"provider.oneview.cacert_file": "sends nothing: as cacert_file, to the appliance",
	"provider.oneview.insecure":    "sends nothing: as cacert_file, to the appliance",
	"provider.cloud":               "not played yet: needs Keystone on the line; it decides with which token requests are sent",
	"provider.interface":           "not played yet: needs Keystone on the line; as cloud",
	"provider.region":              "not played yet: needs Keystone on the line; as cloud",
	"provider.inspector_endpoint": "not played yet: needs an inspector on the line; the provider reads inventories there, and writes " +
		"nothing",
	"metal_deployment.failure":         "read-only: what last_error means, by the table of package reason; nothing decides by it",
	"metal_deployment.failure.blame":   "read-only: what last_error means, by the table of package reason; nothing decides by it",
	"metal_deployment.failure.meaning": "read-only: what last_error means, by the table of package reason; nothing decides by it",
	"metal_deployment.failure.next":    "read-only: what last_error means, by the table of package reason; nothing decides by it",
	"metal_deployment.failure.reason":  "read-only: what last_error means, by the table of package reason; nothing decides by it",
	"metal_deployment.failure.words":   "read-only: what last_error means, by the table of package reason; nothing decides by it",
	"metal forecast":                   "reads a saved plan, and lists of nodes; TestForecast compares what it says with applies",
	"metal lint":                       "reads files of a configuration, and makes no request",
	"metal man":                        "writes manual pages to a folder, and makes no request",
	"metal oneview migrate": "not played yet: changes driver_info; needs nodes with pre-allocation, which no configuration of the " +
		"provider makes",
	"metal oneview help": "prints a text, and makes no request",
}
