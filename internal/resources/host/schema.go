package host

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

func (h *host) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Enrolls a physical machine in Ironic, as a node with its ports, and prepares it up to `target_state`.\n\n" +
			"Enrolling and verifying a machine does nothing to it. These do: `target_state = \"available\"`, `inspect`, " +
			"`inspect_triggers`, `power_state`, `bios_settings`, `raid`, `firmware`, `boot_mode` and `secure_boot`.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "UUID of the node.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"driver_info_wo": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, WriteOnly: true,
				MarkdownDescription: "Secret settings of the driver, such as `redfish_password`. Not stored.",
				Validators: append(framework.KeyValidators(), mapvalidator.ValueStringsAre(framework.Trimmed),
					mapvalidator.AlsoRequires(path.MatchRoot("driver_info_wo_version"))),
			},
			"driver_info_wo_version": framework.SecretVersion("driver_info_wo", ""),
			"ports":                  portsSchema(),
			"port_groups":            groupsSchema(),
			"inspect": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether to inspect the machine, unless it was inspected before. **The machine boots.** If the node " +
					"is `available`, **Ironic cleans it afterwards**. No effect with `target_state = \"enroll\"`. Default: `false`.",
			},
			"inspect_triggers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Any change, also adding it, inspects the machine again. **The machine boots.** If the node is " +
					"`available`, **Ironic cleans it afterwards**. An error while the node is in use, has no BMC, or has `target_state = " +
					"\"enroll\"`. A new or imported host only records the triggers.",
			},
			"replaced": replacedSchema(),
			"cleanings": schema.Int64Attribute{
				Computed: true,
				MarkdownDescription: "How often a plan has announced that Ironic boots, restarts, configures or cleans the machine for " +
					"this host. **The plan raises it already**, by one, so that it names each such machine; `(known after apply)` if a " +
					"deciding value is not known yet. See [Protect machines](../guides/protect-machines.md#what-a-plan-shows).",
			},
			"restores": schema.Int64Attribute{
				Computed: true,
				MarkdownDescription: "How often a plan has announced that the record of the host is made anew, because Ironic has " +
					"lost it. Not set: never. See [Ironic has lost its records](../guides/lost-records.md).",
			},
			"on_destroy": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What `terraform destroy` does: `delete` (the default) removes the node from Ironic, " +
					"`forget` leaves it there. Neither does anything to the machine.",
				Validators: []validator.String{stringvalidator.OneOf(destroyDelete, destroyForget)},
			},
			"on_failure": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What happens if Ironic has the node, but cannot prepare or switch the machine: with `error` (the " +
					"default), the apply fails, and Terraform applies nothing that refers to this resource. With `warn`, the apply " +
					"warns and goes on without this host, and a new host is not tainted. The next apply tries again.",
				Validators: []validator.String{stringvalidator.OneOf(onFailureError, onFailureWarn)},
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Longest time to prepare the machine, without waiting for a slot. An inspection has " +
					"as much time again. Default: `60m`.",
				Update: true, UpdateDescription: "The same for an update. Default: `60m`.",
				Delete: true, DeleteDescription: "Longest time to wait for an operation in progress before the node is deleted. " +
					"Default: `30m`.",
			}),
		},
	}
	for _, a := range attributes {
		resp.Schema.Attributes[a.name] = a.schema
	}
}

// ValidateConfig checks rules that concern more than one attribute.
func (h *host) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.validateAgent(&resp.Diagnostics)
	m.validateRAID(ctx, &resp.Diagnostics)
	m.validateRollout(ctx, &resp.Diagnostics)
	framework.Show(&resp.Diagnostics, hosts.CheckPorts(m.cablingWish(ctx, nil))...)
	m.validateBoot(&resp.Diagnostics)
	framework.Show(&resp.Diagnostics, hosts.RefusePowerOff(m.wish(ctx, &m, nil))...)
	m.validateReasons(&resp.Diagnostics)
	for key := range framework.StringMap(m.DriverInfo) {
		if ironic.IsSecretKey(key) {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Secret in driver_info", "Plans show driver_info, "+
				"and the state contains it. Move "+key+" to driver_info_wo, or use bmc with username and password.")
		}
	}
	m.validateKeys(&resp.Diagnostics)
	m.validateDriver(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || m.bmc(ctx) == nil || !framework.IsSet(m.bmc(ctx).Address) {
		return
	}
	bmc, err := driverinfo.ParseBMC(m.bmc(ctx).Address.ValueString())
	if err != nil {
		return // the attribute's validator reports it
	}
	if bmc.VerifyCAKey == "" && framework.IsSet(m.bmc(ctx).VerifyCA) {
		resp.Diagnostics.AddAttributeError(path.Root("bmc").AtName("verify_ca"), "Unused setting",
			"IPMI has no certificates. Remove verify_ca.")
	}
	for key := range framework.StringMap(m.DriverInfo) {
		_, twice := bmc.Info[key]
		if twice || key == bmc.UsernameKey || key == bmc.PasswordKey || key == bmc.VerifyCAKey && !m.bmc(ctx).VerifyCA.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Setting configured twice",
				key+" follows from bmc. Remove it here, or use driver and driver_info without bmc.")
		}
	}
}

// validateReasons refuses reasons for what is not so. Ironic has no place for them.
func (m *model) validateReasons(diags *diag.Diagnostics) {
	for name, is := range map[string]struct {
		set    types.Bool
		reason types.String
	}{"maintenance": {m.Maintenance, m.MaintenanceReason}, "retired": {m.Retired, m.RetiredReason}} {
		if framework.IsFalse(is.set) && framework.IsSet(is.reason) {
			diags.AddAttributeError(path.Root(name+"_reason"), "Reason without effect",
				fmt.Sprintf("%s is false, and Ironic keeps a reason only while it is true. Remove %s_reason, or make it null together "+
					"with %s, as in %s_reason = var.%s ? \"broken\" : null.", name, name, name, name, name))
		}
	}
}

// validateDriver refuses a driver that differs from the one that follows from bmc or power_control.
func (m *model) validateDriver(ctx context.Context, diags *diag.Diagnostics) {
	follows, from := "", ""
	if block := m.bmc(ctx); block != nil && framework.IsSet(block.Address) {
		if bmc, err := driverinfo.ParseBMC(block.Address.ValueString()); err == nil {
			follows, from = bmc.Driver, "the address of bmc"
		}
	} else if m.byAgent() {
		follows, from = machine.AgentDriver, "power_control"
	}
	if follows != "" && framework.IsSet(m.Driver) && m.Driver.ValueString() != follows {
		diags.AddAttributeError(path.Root("driver"), "Driver does not fit",
			fmt.Sprintf("The driver follows from %s, and is %s. Remove driver here.", from, follows))
	}
}

// attributes has one row for each attribute of a host that Ironic stores with the node. The id, the provider's own settings
// (inspect, on_destroy, on_failure, timeouts) and the ports (ports.go) are not in the table. Attributes that need more than a row have
// functions of their own (special.go, bmc.go).
var attributes = append([]attribute{
	row[types.String]{
		name: "name", path: "/name",
		schema: text("Name of the node, unique in Ironic: at most 255 letters, digits, `.`, `_`, `~` and `-`.",
			framework.NameValidators()...),
		of:   func(m *model) *types.String { return &m.Name },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.Name) },
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
			mapvalidator.KeysAre(framework.Capability), mapvalidator.ValueStringsAre(framework.Capability), framework.KnownCapabilities()),
		of: func(m *model) *types.Map { return &m.Capabilities },
	}, func(n *ironic.Node) map[string]string { return ironic.Capabilities(n.Properties) }),
	mapRow(row[types.Map]{
		name: "properties", path: "/properties",
		schema: texts("Facts about the hardware, such as `cpus`, `memory_mb` (MiB), `local_gb` (GiB) and `cpu_arch`. "+
			"`capabilities`, `root_device` and `skip_block_devices` are attributes of their own.",
			framework.KeyValidators()...),
		of: func(m *model) *types.Map { return &m.Properties },
	}, facts),
	rootDeviceAttribute(),
	skipBlockDevicesAttribute(),
	interfacesAttribute(),
	bootInterfaceAttribute(),
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
		schema: text("Group of conductors that manage the node, in lower case. A conductor of this group must run.",
			stringvalidator.LengthBetween(1, 255), framework.ConductorGroup),
		of:   func(m *model) *types.String { return &m.ConductorGroup },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.ConductorGroup) },
	}.attribute(),
	row[types.String]{
		name: "shard", path: "/shard", since: 82,
		schema: free("Shard of the node. Needs API 1.82.", 255),
		of:     func(m *model) *types.String { return &m.Shard },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.Shard) },
	}.attribute(),
	row[types.Bool]{
		name: "automated_clean", path: "/automated_clean", since: 47,
		schema: flag("Whether Ironic [cleans](../guides/erasure.md) the node when it becomes available and after each undeployment. With " +
			"`false`, the disks keep their data. Default: Ironic's."),
		of:   func(m *model) *types.Bool { return &m.AutomatedClean },
		node: func(n *ironic.Node) types.Bool { return types.BoolPointerValue(n.AutomatedClean) },
	}.attribute(),
	cleaningRunbookAttribute(),
	quietFlag(row[types.Bool]{
		name: "disable_power_off", path: "/disable_power_off", since: 95,
		schema: flag("Whether Ironic never switches the machine off, and restarts it instead. Not allowed with `power_state = \"off\"`. " +
			"Default: not managed; null then means `false`. Needs API 1.95."),
		of: func(m *model) *types.Bool { return &m.DisablePowerOff },
	}, func(n *ironic.Node) bool { return n.DisablePowerOff }),
	row[types.String]{
		name: "parent_node", path: "/parent_node", since: 83,
		schema: text("UUID (`id` of the `metal_host`) of the machine that contains this one, for example as a DPU. Ironic starts it "+
			"first, and allocates no node that has one. Needs API 1.83.",
			framework.UUID),
		of:   func(m *model) *types.String { return &m.ParentNode },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.ParentNode) },
	}.attribute(),
	bootModeAttribute(),
	consoleAttribute(),
	secureBootAttribute(),
	row[types.Bool]{ // set by a request of its own
		name: "maintenance", with: "/maintenance", gone: types.BoolValue(false),
		schema: flag("Whether the node is in maintenance, so that Ironic neither allocates nor deploys it. A change does nothing to the " +
			"machine; changes of hardware settings wait. Default: not managed."),
		of:   func(m *model) *types.Bool { return &m.Maintenance },
		node: func(n *ironic.Node) types.Bool { return types.BoolValue(n.Maintenance) },
	}.attribute(),
	row[types.String]{
		name: "maintenance_reason", with: "/maintenance",
		schema: text("Reason of the maintenance. Needs `maintenance`.", stringvalidator.AlsoRequires(path.MatchRoot("maintenance"))),
		of:     func(m *model) *types.String { return &m.MaintenanceReason },
		node:   func(n *ironic.Node) types.String { return framework.OrNull(n.MaintenanceReason) },
	}.attribute(),
	row[types.Bool]{
		name: "retired", path: "/retired", since: 61, gone: types.BoolValue(false),
		schema: flag("Whether the node is retired: no allocation gets it, and after an undeployment it becomes `manageable`, not " +
			"`available`. **A change to `false` cleans the machine** if `target_state` is `available`. An error while the node is " +
			"available and reserved. Default: not managed. See [Life cycle](#life-cycle). Needs API 1.61."),
		of:   func(m *model) *types.Bool { return &m.Retired },
		node: func(n *ironic.Node) types.Bool { return types.BoolValue(n.Retired) },
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
		name: "provision_state", later: true, schema: shown("Ironic's provision state of the node."),
		of:   func(m *model) *types.String { return &m.ProvisionState },
		node: func(n *ironic.Node) types.String { return types.StringValue(n.ProvisionState) },
	}.attribute(),
	powerManagedAttribute(),
	row[types.String]{
		name: "last_error", schema: shown("Last error that Ironic reports for the node; null without one."),
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
		name: "instance_name", schema: shown("Name of the instance."),
		of:   func(m *model) *types.String { return &m.InstanceName },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.InstanceName) },
	}.attribute(),
	row[types.String]{
		name: "allocation_id", schema: shown("UUID of the allocation that has reserved the node; null without one."),
		of:   func(m *model) *types.String { return &m.AllocationID },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.AllocationUUID) },
	}.attribute(),
}, hardwareAttributes()...)

// facts returns a node's scalar properties, except capabilities, which have an attribute of their own.
func facts(n *ironic.Node) map[string]string {
	properties := framework.Scalars(n.Properties)
	delete(properties, capabilitiesKey)
	return properties
}
