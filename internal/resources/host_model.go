package resources

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Values of attributes of metal_host and metal_deployment.
const (
	targetEnroll    = "enroll"
	powerOn         = "on"
	powerOff        = "off"
	destroyDelete   = "delete"
	destroyForget   = "forget"
	maskedByIronic  = "******"
	capabilitiesKey = "capabilities"
	rootDeviceKey   = "root_device"
)

type hostModel struct {
	ID                  types.String   `tfsdk:"id"`
	Name                types.String   `tfsdk:"name"`
	BMC                 types.Object   `tfsdk:"bmc"`
	Driver              types.String   `tfsdk:"driver"`
	DriverInfo          types.Map      `tfsdk:"driver_info"`
	DriverInfoWO        types.Map      `tfsdk:"driver_info_wo"`
	DriverInfoWOVersion types.Int64    `tfsdk:"driver_info_wo_version"`
	Ports               types.Map      `tfsdk:"ports"`
	ResourceClass       types.String   `tfsdk:"resource_class"`
	Traits              types.Set      `tfsdk:"traits"`
	Capabilities        types.Map      `tfsdk:"capabilities"`
	Properties          types.Map      `tfsdk:"properties"`
	RootDevice          types.Map      `tfsdk:"root_device"`
	Interfaces          types.Object   `tfsdk:"interfaces"`
	Extra               types.Dynamic  `tfsdk:"extra"`
	Description         types.String   `tfsdk:"description"`
	Owner               types.String   `tfsdk:"owner"`
	Lessee              types.String   `tfsdk:"lessee"`
	ConductorGroup      types.String   `tfsdk:"conductor_group"`
	Shard               types.String   `tfsdk:"shard"`
	AutomatedClean      types.Bool     `tfsdk:"automated_clean"`
	Maintenance         types.Bool     `tfsdk:"maintenance"`
	MaintenanceReason   types.String   `tfsdk:"maintenance_reason"`
	Retired             types.Bool     `tfsdk:"retired"`
	RetiredReason       types.String   `tfsdk:"retired_reason"`
	Protected           types.Bool     `tfsdk:"protected"`
	ProtectedReason     types.String   `tfsdk:"protected_reason"`
	TargetState         types.String   `tfsdk:"target_state"`
	Inspect             types.Bool     `tfsdk:"inspect"`
	PowerState          types.String   `tfsdk:"power_state"`
	OnDestroy           types.String   `tfsdk:"on_destroy"`
	Timeouts            timeouts.Value `tfsdk:"timeouts"`
	ProvisionState      types.String   `tfsdk:"provision_state"`
	PowerManaged        types.Bool     `tfsdk:"power_managed"`
	LastError           types.String   `tfsdk:"last_error"`
	Fault               types.String   `tfsdk:"fault"`
	InstanceUUID        types.String   `tfsdk:"instance_uuid"`
	AllocationID        types.String   `tfsdk:"allocation_id"`
	Inventory           types.Object   `tfsdk:"inventory"`
}

type bmcModel struct {
	Address           types.String `tfsdk:"address"`
	Username          types.String `tfsdk:"username"`
	Password          types.String `tfsdk:"password"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
	VerifyCA          types.Bool   `tfsdk:"verify_ca"`
}

type portModel struct {
	PXEEnabled          types.Bool   `tfsdk:"pxe_enabled"`
	PhysicalNetwork     types.String `tfsdk:"physical_network"`
	LocalLinkConnection types.Map    `tfsdk:"local_link_connection"`
}

var portType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"pxe_enabled": types.BoolType, "physical_network": types.StringType, "local_link_connection": types.MapType{ElemType: types.StringType},
}}

var interfacesType = func() map[string]attr.Type {
	kinds := map[string]attr.Type{}
	for _, name := range interfaceNames {
		kinds[name] = types.StringType
	}
	return kinds
}()

// bmc is the bmc block; nil if it is null or unknown.
func (m *hostModel) bmc(ctx context.Context) *bmcModel {
	if !isSet(m.BMC) {
		return nil
	}
	var bmc bmcModel
	if m.BMC.As(ctx, &bmc, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &bmc
}

// ports are the ports by MAC address; nil if they are null or unknown.
func (m *hostModel) ports(ctx context.Context) map[string]portModel {
	if !isSet(m.Ports) {
		return nil
	}
	ports := map[string]portModel{}
	if m.Ports.ElementsAs(ctx, &ports, false).HasError() {
		return nil
	}
	return ports
}

func portsValue(ctx context.Context, ports map[string]portModel) types.Map {
	value, _ := types.MapValueFrom(ctx, portType, ports)
	return value
}

// name is how messages call the host.
func (m *hostModel) label() string {
	if isSet(m.Name) {
		return m.Name.ValueString()
	}
	return m.ID.ValueString()
}

// settings are what a configuration says about the node itself, by the path of a patch, such as "/extra/team". Only what
// is written is in it; traits, ports, capabilities, maintenance and secrets go their own ways.
func (m *hostModel) settings(ctx context.Context) map[string]any {
	s := map[string]any{}
	for path, value := range map[string]types.String{
		"/name": m.Name, "/driver": m.Driver, "/resource_class": m.ResourceClass, "/description": m.Description, "/owner": m.Owner,
		"/lessee": m.Lessee, "/conductor_group": m.ConductorGroup, "/shard": m.Shard,
		"/retired_reason": m.RetiredReason, "/protected_reason": m.ProtectedReason,
	} {
		if isSet(value) {
			s[path] = value.ValueString()
		}
	}
	for path, value := range map[string]types.Bool{"/automated_clean": m.AutomatedClean, "/retired": m.Retired, "/protected": m.Protected} {
		if isSet(value) {
			s[path] = value.ValueBool()
		}
	}
	for prefix, values := range map[string]types.Map{"/driver_info/": m.DriverInfo, "/properties/": m.Properties} {
		for key, value := range stringMap(values) {
			s[prefix+key] = value
		}
	}
	if hints := stringMap(m.RootDevice); len(hints) > 0 {
		s["/properties/"+rootDeviceKey] = hints
	}
	for key, value := range jsonObject(m.Extra) {
		if value != nil {
			s["/extra/"+key] = value
		}
	}
	if isSet(m.Interfaces) {
		for name, value := range m.Interfaces.Attributes() {
			if text, ok := value.(types.String); ok && isSet(text) {
				s["/"+name+"_interface"] = text.ValueString()
			}
		}
	}
	m.bmcSettings(ctx, s)
	return s
}

// bmcSettings adds what follows from the bmc block. Interfaces that are written win over those of its scheme.
func (m *hostModel) bmcSettings(ctx context.Context, s map[string]any) {
	block := m.bmc(ctx)
	if block == nil {
		return
	}
	bmc, err := ironic.ParseBMC(block.Address.ValueString())
	if err != nil {
		return // refused by the validator
	}
	s["/driver"] = bmc.Driver
	for key, value := range bmc.Info {
		s["/driver_info/"+key] = value
	}
	for name, value := range bmc.Interfaces {
		if path := "/" + name + "_interface"; s[path] == nil {
			s[path] = value
		}
	}
	if isSet(block.Username) {
		s["/driver_info/"+bmc.UsernameKey] = block.Username.ValueString()
	}
	if isSet(block.VerifyCA) && bmc.VerifyCAKey != "" {
		s["/driver_info/"+bmc.VerifyCAKey] = block.VerifyCA.ValueBool()
	}
	if isSet(block.Password) {
		s["/driver_info/"+bmc.PasswordKey] = block.Password.ValueString()
	}
}

// secrets are the write-only values by the path of a patch. They come from the configuration alone.
func (m *hostModel) secrets(ctx context.Context) map[string]any {
	s := map[string]any{}
	for key, value := range stringMap(m.DriverInfoWO) {
		s["/driver_info/"+key] = value
	}
	if block := m.bmc(ctx); block != nil && isSet(block.PasswordWO) {
		if bmc, err := ironic.ParseBMC(block.Address.ValueString()); err == nil {
			s["/driver_info/"+bmc.PasswordKey] = block.PasswordWO.ValueString()
		}
	}
	return s
}

// secretsVersion changes when the write-only values are to be sent again.
func (m *hostModel) secretsVersion(ctx context.Context) [2]types.Int64 {
	v := [2]types.Int64{m.DriverInfoWOVersion, types.Int64Null()}
	if block := m.bmc(ctx); block != nil {
		v[1] = block.PasswordWOVersion
	}
	return v
}

// fromNode takes over what Ironic knows. Maps, traits and ports take over only what they have already, unless all is
// asked for, as after an import. What is unknown becomes known in any case.
func (m *hostModel) fromNode(ctx context.Context, node *ironic.Node, ports map[string]ironic.Port, all bool) {
	m.ID = types.StringValue(node.UUID)
	m.Name, m.Driver = orNull(node.Name), orNull(node.Driver)
	m.ResourceClass, m.Description = orNull(node.ResourceClass), orNull(node.Description)
	m.Owner, m.Lessee, m.ConductorGroup, m.Shard = orNull(node.Owner), orNull(node.Lessee), orNull(node.ConductorGroup), orNull(node.Shard)
	m.AutomatedClean = types.BoolPointerValue(node.AutomatedClean)
	m.Maintenance, m.MaintenanceReason = types.BoolValue(node.Maintenance), orNull(node.MaintenanceReason)
	m.Retired, m.RetiredReason = types.BoolValue(node.Retired), orNull(node.RetiredReason)
	m.Protected, m.ProtectedReason = types.BoolValue(node.Protected), orNull(node.ProtectedReason)
	m.fromNodeMaps(ctx, node, all)
	m.fromPorts(ctx, ports, all)
	m.Interfaces = types.ObjectValueMust(interfacesType, interfacesOf(node))
	if block := m.bmc(ctx); block != nil {
		m.fromBMC(ctx, block, node)
	}
	if node.PowerState != "" || m.PowerState.IsUnknown() || ironic.PowerManaged(node) {
		m.PowerState = orNull(ironic.Power(node))
	} // else nobody knows, and what is configured stays
	if all || m.TargetState.IsNull() || m.TargetState.IsUnknown() {
		m.TargetState = types.StringValue(targetOf(node))
	}
	m.volatile(node)
}

// volatile takes over what changes as Ironic works.
func (m *hostModel) volatile(node *ironic.Node) {
	m.ProvisionState = types.StringValue(node.ProvisionState)
	m.PowerManaged = types.BoolValue(ironic.PowerManaged(node))
	m.LastError, m.Fault = orNull(node.LastError), orNull(node.Fault)
	m.InstanceUUID, m.AllocationID = orNull(node.InstanceUUID), orNull(node.AllocationUUID)
	if m.Inventory.IsUnknown() {
		m.Inventory = types.ObjectNull(inventoryType)
	}
}

// targetOf is the target state that a node which is not ours yet is at.
func targetOf(node *ironic.Node) string {
	switch {
	case node.ProvisionState == targetEnroll:
		return targetEnroll
	case node.InstanceUUID != "" || ironic.Settled(ironic.GoalAvailable, ironic.State(node.ProvisionState)):
		return string(ironic.GoalAvailable)
	}
	return string(ironic.GoalManageable)
}

func (m *hostModel) fromNodeMaps(ctx context.Context, node *ironic.Node, all bool) {
	properties := scalars(node.Properties)
	delete(properties, capabilitiesKey)
	capabilities := ironic.Capabilities(node.Properties)
	hints, _ := node.Properties[rootDeviceKey].(map[string]any)
	readable := map[string]string{}
	for key, value := range scalars(node.DriverInfo) {
		if value != maskedByIronic {
			readable[key] = value
		}
	}
	if all {
		extra := map[string]any{}
		for key, value := range node.Extra {
			if !ironic.OwnKey(key) {
				extra[key] = value
			}
		}
		m.Extra = dynamicObject(ctx, extra)
		m.Properties, m.Capabilities, m.RootDevice, m.DriverInfo = mapValue(properties), mapValue(capabilities), mapValue(scalars(hints)), mapValue(readable)
		m.Traits = setValue(node.Traits)
		return
	}
	if m.Extra.IsUnknown() {
		m.Extra = types.DynamicNull()
	}
	m.Extra = refreshObject(ctx, m.Extra, node.Extra)
	for old, actual := range map[*types.Map]map[string]string{&m.Properties: properties, &m.Capabilities: capabilities, &m.RootDevice: scalars(hints)} {
		if old.IsUnknown() {
			*old = types.MapNull(types.StringType)
		}
		*old = refreshMap(*old, actual)
	}
	// What Ironic masks is as we wrote it, as far as one can know.
	for key, value := range stringMap(m.DriverInfo) {
		if node.DriverInfo[key] == maskedByIronic {
			readable[key] = value
		}
	}
	if m.DriverInfo.IsUnknown() {
		m.DriverInfo = types.MapNull(types.StringType)
	}
	m.DriverInfo = refreshMap(m.DriverInfo, readable)
	if m.Traits.IsUnknown() {
		m.Traits = types.SetNull(types.StringType)
	}
	if wanted := stringSet(m.Traits); wanted != nil {
		m.Traits = types.SetValueMust(types.StringType, nil)
		if held := intersection(wanted, node.Traits); len(held) > 0 {
			m.Traits = setValue(held)
		}
	}
}

// fromBMC shows an address or user name that somebody else has changed.
func (m *hostModel) fromBMC(ctx context.Context, block *bmcModel, node *ironic.Node) {
	bmc, err := ironic.ParseBMC(block.Address.ValueString())
	if err != nil {
		return
	}
	actual := scalars(node.DriverInfo)
	for key, value := range scalars(bmc.Info) {
		if actual[key] != value {
			block.Address = types.StringValue(ironic.DescribeBMC(node))
			break
		}
	}
	if isSet(block.Username) {
		block.Username = orNull(actual[bmc.UsernameKey])
	}
	m.BMC, _ = types.ObjectValueFrom(ctx, m.BMC.AttributeTypes(ctx), block)
}

func interfacesOf(node *ironic.Node) map[string]attr.Value {
	values := map[string]attr.Value{}
	for name, value := range map[string]string{
		"bios": node.BIOSInterface, "boot": node.BootInterface, "console": node.ConsoleInterface, "deploy": node.DeployInterface,
		"firmware": node.FirmwareInterface, "inspect": node.InspectInterface, "management": node.ManagementInterface,
		"network": node.NetworkInterface, "power": node.PowerInterface, "raid": node.RAIDInterface, "rescue": node.RescueInterface,
		"storage": node.StorageInterface, "vendor": node.VendorInterface,
	} {
		values[name] = orNull(value)
	}
	return values
}

func (m *hostModel) fromPorts(ctx context.Context, ports map[string]ironic.Port, all bool) {
	known := m.ports(ctx)
	if m.Ports.IsUnknown() || (known == nil && !all) {
		m.Ports = types.MapNull(portType)
		return
	}
	now := map[string]portModel{}
	for mac, port := range ports {
		if _, ours := known[mac]; !ours && !all {
			continue
		}
		now[mac] = portModel{
			PXEEnabled: types.BoolValue(port.PXEEnabled), PhysicalNetwork: orNull(port.PhysicalNetwork),
			LocalLinkConnection: mapValue(scalars(port.LocalLinkConnection)),
		}
	}
	if all && len(now) == 0 {
		m.Ports = types.MapNull(portType)
		return
	}
	m.Ports = portsValue(ctx, now)
}

func intersection(wanted, have []string) []string {
	set := map[string]bool{}
	for _, item := range have {
		set[item] = true
	}
	var out []string
	for _, item := range wanted {
		if set[item] {
			out = append(out, item)
		}
	}
	return out
}
