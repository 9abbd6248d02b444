package host

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// attributes has one row for each attribute of a host that Ironic stores with the node. The id, the provider's own settings
// (inspect, on_destroy, on_failure, timeouts) and the ports (ports.go) are not in the table. Attributes that need more than a row have
// functions of their own (special.go, bmc.go).
var attributes = append([]attribute{
	row[types.String]{
		name: "name", path: "/name",
		schema: text("Name of the node, unique in Ironic: at most 255 letters, digits, `.`, `_`, `~` and `-`.", framework.NameValidators()...),
		of:     func(m *model) *types.String { return &m.Name },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.Name) },
	}.attribute(),
	bmcAttribute(),
	powerControlAttribute(),
	driverAttribute(),
	driverInfoAttribute(),
	row[types.String]{
		name: "resource_class", path: "/resource_class", since: 21, later: true,
		schema: free("Class by which allocations select the node, such as `baremetal`. At most 80 characters.", 80),
		of:     func(m *model) *types.String { return &m.ResourceClass },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.ResourceClass) },
	}.attribute(),
	traitsAttribute(),
	mapRow(row[types.Map]{
		name: "capabilities", with: "/capabilities",
		schema: texts("Entries of `properties.capabilities`, such as `boot_mode = \"uefi\"`. A change takes effect at the next deployment.",
			mapvalidator.KeysAre(framework.Capability), mapvalidator.ValueStringsAre(framework.Capability)),
		of: func(m *model) *types.Map { return &m.Capabilities },
	}, func(n *ironic.Node) map[string]string { return ironic.Capabilities(n.Properties) }),
	mapRow(row[types.Map]{
		name: "properties", path: "/properties",
		schema: texts("Facts about the hardware, such as `cpus`, `memory_mb` (MiB), `local_gb` (GiB) and `cpu_arch`. "+
			"`capabilities` and `root_device` are attributes of their own.",
			append(framework.KeyValidators(), mapvalidator.KeysAre(stringvalidator.NoneOf(capabilitiesKey, rootDeviceKey)))...),
		of: func(m *model) *types.Map { return &m.Properties },
	}, facts),
	rootDeviceAttribute(),
	interfacesAttribute(),
	networkDataAttribute(),
	extraAttribute(),
	row[types.String]{
		name: "description", path: "/description", since: 51,
		schema: free("Description, at most 4,096 characters.", 4096),
		of:     func(m *model) *types.String { return &m.Description },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.Description) },
	}.attribute(),
	row[types.String]{
		name: "owner", path: "/owner", since: 50, later: true,
		schema: free("Project (UUID or name) that owns the node.", 255),
		of:     func(m *model) *types.String { return &m.Owner },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.Owner) },
	}.attribute(),
	row[types.String]{
		name: "lessee", path: "/lessee", since: 65,
		schema: free("Project (UUID or name) that leases the node. Needs API 1.65.", 255),
		of:     func(m *model) *types.String { return &m.Lessee },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.Lessee) },
	}.attribute(),
	row[types.String]{
		name: "conductor_group", path: "/conductor_group", since: 46,
		schema: text("Group of conductors that manage the node, in lower case. A conductor of this group must run.", stringvalidator.LengthBetween(1, 255), framework.ConductorGroup),
		of:     func(m *model) *types.String { return &m.ConductorGroup },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.ConductorGroup) },
	}.attribute(),
	row[types.String]{
		name: "shard", path: "/shard", since: 82,
		schema: free("Shard of the node. Needs API 1.82.", 255),
		of:     func(m *model) *types.String { return &m.Shard },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.Shard) },
	}.attribute(),
	row[types.Bool]{
		name: "automated_clean", path: "/automated_clean", since: 47,
		schema: flag("Whether Ironic cleans the node when it becomes available and after each undeployment. With `false`, the disks keep their data. Default: Ironic's configuration."),
		of:     func(m *model) *types.Bool { return &m.AutomatedClean },
		node:   func(n *ironic.Node) types.Bool { return types.BoolPointerValue(n.AutomatedClean) },
	}.attribute(),
	row[types.Bool]{
		name: "disable_power_off", path: "/disable_power_off", since: 95, gone: types.BoolValue(false),
		schema: flag("Whether Ironic never switches the machine off, and restarts it instead. Not allowed with `power_state = \"off\"`. Default: not managed. Needs API 1.95."),
		of:     func(m *model) *types.Bool { return &m.DisablePowerOff },
		node:   func(n *ironic.Node) types.Bool { return types.BoolValue(n.DisablePowerOff) },
	}.attribute(),
	row[types.String]{
		name: "parent_node", path: "/parent_node", since: 83,
		schema: text("UUID (`id` of the `metal_host`) of the machine that contains this one, for example as a DPU. Ironic starts it first, and allocates no node that has one. Needs API 1.83.",
			framework.UUID),
		of:   func(m *model) *types.String { return &m.ParentNode },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.ParentNode) },
	}.attribute(),
	bootModeAttribute(),
	secureBootAttribute(),
	row[types.Bool]{ // set by a request of its own
		name: "maintenance", with: "/maintenance", gone: types.BoolValue(false),
		schema: flag("Whether the node is in maintenance, so that Ironic neither allocates nor deploys it. A change does nothing to the machine; changes of hardware settings wait. Default: not managed."),
		of:     func(m *model) *types.Bool { return &m.Maintenance },
		node:   func(n *ironic.Node) types.Bool { return types.BoolValue(n.Maintenance) },
	}.attribute(),
	row[types.String]{
		name: "maintenance_reason", with: "/maintenance",
		schema: text("Reason of the maintenance. Needs `maintenance`.", stringvalidator.AlsoRequires(path.MatchRoot("maintenance"))),
		of:     func(m *model) *types.String { return &m.MaintenanceReason },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.MaintenanceReason) },
	}.attribute(),
	row[types.Bool]{
		name: "retired", path: "/retired", since: 61, gone: types.BoolValue(false),
		schema: flag("Whether the node is retired: no allocation gets it, and after an undeployment it becomes `manageable`, not `available`. **A change to `false` cleans the machine** if `target_state` is `available`. An error while the node is available and reserved. Default: not managed. See [Life cycle](#life-cycle). Needs API 1.61."),
		of:     func(m *model) *types.Bool { return &m.Retired },
		node:   func(n *ironic.Node) types.Bool { return types.BoolValue(n.Retired) },
	}.attribute(),
	row[types.String]{
		name: "retired_reason", path: "/retired_reason", with: "/retired",
		schema: text("Reason of the retirement. Needs `retired`.", stringvalidator.AlsoRequires(path.MatchRoot("retired"))),
		of:     func(m *model) *types.String { return &m.RetiredReason },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.RetiredReason) },
	}.attribute(),
	targetStateAttribute(),
	powerStateAttribute(),
	powerOffModeAttribute(),
	row[types.String]{
		name: "provision_state", later: true, schema: shown("Ironic's provision state of the node, such as `available` or `active`."),
		of:   func(m *model) *types.String { return &m.ProvisionState },
		node: func(n *ironic.Node) types.String { return types.StringValue(n.ProvisionState) },
	}.attribute(),
	powerManagedAttribute(),
	row[types.String]{
		name: "last_error", later: true, schema: shown("Last error that Ironic reports for the node; null without one."),
		of:   func(m *model) *types.String { return &m.LastError },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.LastError) },
	}.attribute(),
	row[types.String]{
		name: "fault", schema: shown("Fault that Ironic has detected, such as `power failure`; null without one."),
		of:   func(m *model) *types.String { return &m.Fault },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.Fault) },
	}.attribute(),
	row[types.String]{
		name: "instance_id", schema: shown("UUID of the allocation or instance that has reserved the node; null if it is free."),
		of:   func(m *model) *types.String { return &m.InstanceID },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.InstanceUUID) },
	}.attribute(),
	row[types.String]{
		name: "allocation_id", schema: shown("UUID of the allocation that has reserved the node; null without one."),
		of:   func(m *model) *types.String { return &m.AllocationID },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.AllocationUUID) },
	}.attribute(),
}, hardwareAttributes()...)

// text is an optional string for which Ironic may have a value.
func text(description string, validators ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: description, Validators: validators}
}

// free is a text of any content. It has at most the given number of characters.
func free(description string, most int) schema.StringAttribute {
	return text(description, stringvalidator.LengthBetween(1, most))
}

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: description}
}

func texts(description string, validators ...validator.Map) schema.MapAttribute {
	return schema.MapAttribute{ElementType: types.StringType, Optional: true, Computed: true, MarkdownDescription: description, Validators: validators}
}

// shown is a read-only string.
func shown(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// facts returns a node's scalar properties, except capabilities, which have an attribute of their own.
func facts(n *ironic.Node) map[string]string {
	properties := framework.Scalars(n.Properties)
	delete(properties, capabilitiesKey)
	return properties
}
