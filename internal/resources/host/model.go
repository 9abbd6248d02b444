package host

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

// Values of attributes of metal_host and metal_deployment.
const (
	targetEnroll    = "enroll"
	destroyDelete   = "delete"
	destroyForget   = "forget"
	capabilitiesKey = "capabilities"
	rootDeviceKey   = "root_device"
)

type model struct {
	ID                  types.String   `tfsdk:"id"`
	Name                types.String   `tfsdk:"name"`
	BMC                 types.Object   `tfsdk:"bmc"`
	PowerControl        types.String   `tfsdk:"power_control"`
	Driver              types.String   `tfsdk:"driver"`
	DriverInfo          types.Map      `tfsdk:"driver_info"`
	DriverInfoWO        types.Map      `tfsdk:"driver_info_wo"`
	DriverInfoWOVersion types.String   `tfsdk:"driver_info_wo_version"`
	Ports               types.Map      `tfsdk:"ports"`
	PortGroups          types.Map      `tfsdk:"port_groups"`
	ResourceClass       types.String   `tfsdk:"resource_class"`
	Traits              types.Set      `tfsdk:"traits"`
	Capabilities        types.Map      `tfsdk:"capabilities"`
	Properties          types.Map      `tfsdk:"properties"`
	RootDevice          types.Map      `tfsdk:"root_device"`
	SkipBlockDevices    types.Set      `tfsdk:"skip_block_devices"`
	Interfaces          types.Object   `tfsdk:"hardware_interfaces"`
	BootInterface       types.String   `tfsdk:"boot_interface"`
	NetworkData         framework.JSON `tfsdk:"network_data"`
	Extra               types.Dynamic  `tfsdk:"extra"`
	Description         types.String   `tfsdk:"description"`
	Owner               types.String   `tfsdk:"owner"`
	Lessee              types.String   `tfsdk:"lessee"`
	ConductorGroup      types.String   `tfsdk:"conductor_group"`
	Shard               types.String   `tfsdk:"shard"`
	CleaningRunbook     types.String   `tfsdk:"cleaning_runbook"`
	AutomatedClean      types.Bool     `tfsdk:"automated_clean"`
	DisablePowerOff     types.Bool     `tfsdk:"disable_power_off"`
	ParentNode          types.String   `tfsdk:"parent_node"`
	BootMode            types.String   `tfsdk:"boot_mode"`
	SecureBoot          types.Bool     `tfsdk:"secure_boot"`
	Console             types.String   `tfsdk:"console"`
	Maintenance         types.Bool     `tfsdk:"maintenance"`
	MaintenanceReason   types.String   `tfsdk:"maintenance_reason"`
	Retired             types.Bool     `tfsdk:"retired"`
	RetiredReason       types.String   `tfsdk:"retired_reason"`
	TargetState         types.String   `tfsdk:"target_state"`
	Inspect             types.Bool     `tfsdk:"inspect"`
	InspectTriggers     types.Map      `tfsdk:"inspect_triggers"`
	Replaced            types.Object   `tfsdk:"replaced"`
	PowerState          types.String   `tfsdk:"power_state"`
	PowerOffMode        types.String   `tfsdk:"power_off_mode"`
	OnDestroy           types.String   `tfsdk:"on_destroy"`
	OnFailure           types.String   `tfsdk:"on_failure"`
	ExpectHardware      types.Dynamic  `tfsdk:"expect_hardware"`
	Qualification       types.Object   `tfsdk:"qualification"`
	BIOSSettings        types.Map      `tfsdk:"bios_settings"`
	RAID                types.Object   `tfsdk:"raid"`
	Firmware            types.Map      `tfsdk:"firmware"`
	HardwareChanges     types.Object   `tfsdk:"hardware_changes"`
	HardwareDrift       types.String   `tfsdk:"hardware_drift"`
	PendingChanges      types.Set      `tfsdk:"pending_changes"`
	Timeouts            timeouts.Value `tfsdk:"timeouts"`
	ProvisionState      types.String   `tfsdk:"provision_state"`
	PowerManaged        types.Bool     `tfsdk:"power_managed"`
	LastError           types.String   `tfsdk:"last_error"`
	Fault               types.String   `tfsdk:"fault"`
	InstanceName        types.String   `tfsdk:"instance_name"`
	InstanceID          types.String   `tfsdk:"instance_id"`
	AllocationID        types.String   `tfsdk:"allocation_id"`
	Cleanings           types.Int64    `tfsdk:"cleanings"`
	Restores            types.Int64    `tfsdk:"restores"`
}

func (m *model) label() string {
	if framework.IsSet(m.Name) {
		return m.Name.ValueString()
	}
	return m.ID.ValueString()
}

// isImported reports whether a state is that of a new import: it has the id only.
func (m *model) isImported() bool { return m.Driver.IsNull() }

// settings returns the settings of the node itself. Traits, ports, capabilities, maintenance and secrets are sent separately.
func (m *model) settings(ctx context.Context) ironic.Settings {
	s := ironic.Settings{}
	for _, a := range attributes {
		if a.encode != nil {
			a.encode(ctx, m, s)
		}
	}
	return s
}

// fromNode copies Ironic's values into the model. Of maps, traits and ports it copies only the elements that the model has
// already, unless everything is true, as after an import. Unknown values always become known.
func (m *model) fromNode(ctx context.Context, seen sight, everything bool) {
	m.ID = types.StringValue(seen.node.UUID)
	seen.node = machine.Restored(seen.node)
	for _, a := range attributes {
		if a.read != nil {
			a.read(ctx, m, seen.node, everything)
		}
	}
	if m.Restores.IsUnknown() {
		m.Restores = types.Int64Null()
	}
	if !framework.IsSet(m.Cleanings) {
		m.Cleanings = types.Int64Value(0)
	}
	m.fromPorts(ctx, seen, everything)
	m.fromGroups(ctx, seen, everything)
}

// refresh copies what a Read has found into a state: all of it after an import.
func (m *model) refresh(ctx context.Context, seen sight) {
	imported := m.isImported()
	m.fromNode(ctx, seen, imported)
	if imported { // Ironic reads the vendor from the BMC: it is no setting of a user
		properties := framework.StringMap(m.Properties)
		delete(properties, "vendor")
		m.Properties = framework.MapValue(properties)
	}
	if imported && found.Likely(seen.node) { // the facts of a discovery are not settings, and would fill the plan of a rack
		m.Ports, m.PortGroups, m.Properties = types.MapNull(portType), types.MapNull(groupType), types.MapNull(types.StringType)
	}
}

// keepPlanned restores all known planned values: Terraform demands that the state equals the plan. If Ironic has stored another
// value, the next refresh shows it.
func (m *model) keepPlanned(ctx context.Context, planned *model) {
	for _, a := range attributes {
		a.keep(ctx, m, planned)
	}
	m.Ports, m.PortGroups = keepPorts(ctx, m, planned), keepGroups(ctx, m, planned)
}

// node returns the provision state, reservation and maintenance that the state has of the node.
func (m *model) node() *ironic.Node {
	return &ironic.Node{
		ProvisionState: m.ProvisionState.ValueString(), InstanceUUID: m.InstanceID.ValueString(),
		Maintenance: m.Maintenance.ValueBool(), MaintenanceReason: m.MaintenanceReason.ValueString(),
	}
}

// assumed is what a state says of the machine to the steps of its next apply.
func (m *model) assumed() machine.Assumed {
	return machine.Assumed{
		State: ironic.State(m.ProvisionState.ValueString()), Maintenance: m.Maintenance.ValueBool() && m.Fault.IsNull(),
		Power: m.PowerState.ValueString(),
	}
}

// lostRecord is the host as it is if Ironic has lost its record.
func (m *model) lostRecord() lost.Record {
	return lost.Record{Kind: kindHost, ID: m.ID.ValueString(), Machine: m.label()}.Of(m.node())
}

const kindHost = "metal_host"

func (m *model) describe() string {
	switch {
	case framework.IsSet(m.Name):
		return m.Name.ValueString()
	case framework.IsSet(m.ID):
		return m.ID.ValueString()
	}
	return "(name not known yet)"
}

func (m *model) managedBy(ctx context.Context) managed {
	var paths managed
	for path := range m.settings(ctx).ByPath() {
		paths = append(paths, path)
	}
	for key := range m.secrets(ctx) {
		paths = append(paths, "/driver_info/"+key)
	}
	for _, trait := range framework.StringSet(m.Traits) {
		paths = append(paths, "/traits/"+trait)
	}
	for name := range framework.StringMap(m.Capabilities) {
		paths = append(paths, "/capabilities/"+name)
	}
	for mac, port := range m.ports(ctx) {
		paths = append(paths, "/ports/"+mac)
		if framework.IsSet(port.PortGroup) {
			paths = append(paths, "/members/"+mac)
		}
		for key := range setKeys(port.Extra) {
			paths = append(paths, "/port_extra/"+mac+"/"+key)
		}
	}
	for name, group := range m.portGroups(ctx) {
		paths = append(paths, "/port_groups/"+name)
		for key := range setKeys(group.Extra) {
			paths = append(paths, "/group_extra/"+name+"/"+key)
		}
	}
	if framework.IsSet(m.Maintenance) {
		paths = append(paths, "/maintenance")
	}
	if framework.IsSet(m.MaintenanceReason) {
		paths = append(paths, "/maintenance_reason")
	}
	if framework.IsSet(m.PowerState) {
		paths = append(paths, "/power_state/"+m.PowerState.ValueString())
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// hostSettings returns what a configuration makes of the settings of a node. before is what was managed until now.
func (m *model) hostSettings(ctx context.Context, before managed) *hosts.Settings {
	now := m.managedBy(ctx)
	lost := slices.DeleteFunc(slices.Clone(before), func(path string) bool { return slices.Contains(now, path) })
	want := &hosts.Settings{
		Settings: m.settings(ctx), Secrets: m.secrets(ctx), Capabilities: framework.StringMap(m.Capabilities),
		Traits:              framework.StringSet(m.Traits),
		WithoutCapabilities: lost.below("/capabilities"), WithoutTraits: lost.below("/traits"), Without: slices.DeleteFunc(lost, isPseudo),
		WrittenInfo: before.below("/driver_info"), Ends: m.ends(ctx),
	}
	if framework.IsSet(m.Maintenance) || before.has("/maintenance") {
		want.Maintenance = &machine.Maintenance{On: m.Maintenance.ValueBool(), Reason: m.MaintenanceReason.ValueString()}
	}
	return want
}

// isPseudo reports whether a managed path is not one of a setting.
func isPseudo(path string) bool {
	attribute, _, _ := strings.Cut(path[1:], "/")
	switch attribute {
	case "traits", "capabilities", "ports", "port_extra", "members", "port_groups", "group_extra", "maintenance",
		"maintenance_reason", "power_state":
		return true
	}
	return false
}
