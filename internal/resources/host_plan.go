package resources

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ModifyPlan settles what is not in the configuration, sees what the node still has to do, and warns of what that costs.
func (h *host) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	var plan, config hostModel
	var state *hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if block := config.bmc(ctx); block != nil && isSet(block.Address) {
		if bmc, err := ironic.ParseBMC(block.Address.ValueString()); err == nil {
			plan.Driver = types.StringValue(bmc.Driver)
		}
	}
	changes := state == nil || !req.Plan.Raw.Equal(req.State.Raw)
	if state == nil {
		plan.planDefaults(ctx, &config)
		h.planNew(ctx, &plan, &config, &resp.Diagnostics)
		h.planUnguarded(&plan, &config, &resp.Diagnostics)
	} else {
		plan.keepUnmanaged(ctx, &config, state, readManaged(ctx, req.Private))
		h.planWalk(ctx, &plan, &config, state, wasInspected(ctx, req.Private), &resp.Diagnostics)
		h.planTemporary(ctx, &plan, &resp.Diagnostics)
	}
	if changes && h.known() {
		h.checkVersions(ctx, &config, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planNew plans a host that is to be created.
func (h *host) planNew(ctx context.Context, plan, config *hostModel, diags *diag.Diagnostics) {
	if config.BMC.IsNull() && config.Driver.IsNull() {
		diags.AddError("No BMC and no driver", "A new metal_host needs bmc, or driver with driver_info: how shall Ironic reach the machine? "+
			"For a machine that Ironic knows already, import it.")
	}
	if config.TargetState.IsNull() {
		plan.TargetState = types.StringValue(string(ironic.GoalManageable))
	}
	plan.PowerManaged = config.powerManaged(ctx)
	switch target := plan.TargetState.ValueString(); {
	case isFalse(plan.PowerManaged):
		if target != targetEnroll || isSet(config.PowerState) {
			warnUnmanaged(diags, plan)
		}
	default:
		inspects := plan.mayInspect() && target != targetEnroll
		h.warnBoot(ctx, plan, inspects, slices.Contains(plan.goals(), ironic.GoalAvailable), diags)
		if !config.PowerState.IsNull() {
			warnPower(diags, plan)
		}
	}
}

// powerManaged tells whether a configuration names a BMC; unknown if that is known only after apply.
func (m *hostModel) powerManaged(ctx context.Context) types.Bool {
	if !fullyKnown(ctx, m.BMC, m.Driver, m.DriverInfo, m.DriverInfoWO) {
		return types.BoolUnknown()
	}
	e := m.enrollment(ctx)
	return types.BoolValue(ironic.PowerManaged(&ironic.Node{Driver: e.Driver, DriverInfo: e.DriverInfo}))
}

// fullyKnown reports whether nothing in the values is known only after apply.
func fullyKnown(ctx context.Context, values ...attr.Value) bool {
	for _, value := range values {
		if raw, err := value.ToTerraformValue(ctx); err != nil || !raw.IsFullyKnown() {
			return false
		}
	}
	return true
}

// planDefaults plans what a new node has where the configuration says nothing. What is left unknown depends on Ironic's own
// configuration, the driver, or the walk.
func (m *hostModel) planDefaults(ctx context.Context, config *hostModel) {
	for plan, config := range map[*types.String]types.String{
		&m.Name: config.Name, &m.Description: config.Description, &m.Lessee: config.Lessee, &m.ConductorGroup: config.ConductorGroup,
		&m.Shard: config.Shard, &m.MaintenanceReason: config.MaintenanceReason, &m.RetiredReason: config.RetiredReason,
		&m.ProtectedReason: config.ProtectedReason, &m.Fault: types.StringNull(), &m.InstanceUUID: types.StringNull(),
		&m.AllocationID: types.StringNull(),
	} {
		unset(plan, config, types.StringNull(), false, types.StringNull())
	}
	for plan, config := range map[*types.Bool]types.Bool{&m.Maintenance: config.Maintenance, &m.Retired: config.Retired, &m.Protected: config.Protected} {
		unset(plan, config, types.BoolValue(false), false, types.BoolNull())
	}
	unset(&m.AutomatedClean, config.AutomatedClean, types.BoolNull(), false, types.BoolNull())
	for plan, config := range map[*types.Map]types.Map{
		&m.DriverInfo: config.DriverInfo, &m.Properties: config.Properties, &m.RootDevice: config.RootDevice, &m.Capabilities: config.Capabilities,
	} {
		unset(plan, config, types.MapNull(types.StringType), false, types.MapNull(types.StringType))
	}
	unset(&m.Traits, config.Traits, types.SetNull(types.StringType), false, types.SetNull(types.StringType))
	unset(&m.Extra, config.Extra, types.DynamicNull(), false, types.DynamicNull())
	unset(&m.Ports, config.Ports, types.MapNull(portType), false, types.MapNull(portType))
	m.keepUnmanagedPorts(ctx, config, &hostModel{})
}

// warnBoot warns of what makes the machine boot on its way: or, if OneView users have it, that it will not come to that.
func (h *host) warnBoot(ctx context.Context, plan *hostModel, inspects, becomesAvailable bool, diags *diag.Diagnostics) {
	if (inspects || becomesAvailable) && h.warnTaken(ctx, plan, diags) {
		return
	}
	if inspects {
		warnInspection(diags, plan)
	}
	if becomesAvailable {
		warnCleaning(diags, plan)
	}
}

// warnCleaning warns of cleaning. The summary is the same for all hosts, so that Terraform folds the warnings into one.
func warnCleaning(diags *diag.Diagnostics, plan *hostModel) {
	if isSet(plan.AutomatedClean) && !plan.AutomatedClean.ValueBool() {
		return
	}
	becomes := fmt.Sprintf("Host %s becomes available, and", plan.describe())
	if plan.TargetState.IsUnknown() {
		becomes = fmt.Sprintf("The target_state of host %s is not known yet: if it becomes available,", plan.describe())
	}
	diags.AddAttributeWarning(path.Root("target_state"), "Cleaning erases data",
		becomes+" Ironic cleans it on the way: it boots, and what the site's cleaning steps erase is lost.")
}

// describe is how a plan's messages call the host.
func (m *hostModel) describe() string {
	switch {
	case isSet(m.Name):
		return m.Name.ValueString()
	case isSet(m.ID):
		return m.ID.ValueString()
	}
	return "(name not known yet)"
}

// keepUnmanaged plans what is not in the configuration: what was in it before is removed, everything else stays.
func (m *hostModel) keepUnmanaged(ctx context.Context, config, state *hostModel, before managed) {
	unset(&m.Name, config.Name, state.Name, before.has("/name"), types.StringNull())
	unset(&m.ResourceClass, config.ResourceClass, state.ResourceClass, before.has("/resource_class"), types.StringNull())
	unset(&m.Description, config.Description, state.Description, before.has("/description"), types.StringNull())
	unset(&m.Owner, config.Owner, state.Owner, before.has("/owner"), types.StringNull())
	unset(&m.Lessee, config.Lessee, state.Lessee, before.has("/lessee"), types.StringNull())
	unset(&m.ConductorGroup, config.ConductorGroup, state.ConductorGroup, before.has("/conductor_group"), types.StringNull())
	unset(&m.Shard, config.Shard, state.Shard, before.has("/shard"), types.StringNull())
	unset(&m.AutomatedClean, config.AutomatedClean, state.AutomatedClean, before.has("/automated_clean"), types.BoolNull())
	unset(&m.Maintenance, config.Maintenance, state.Maintenance, before.has("/maintenance"), types.BoolValue(false))
	unset(&m.MaintenanceReason, config.MaintenanceReason, state.MaintenanceReason, before.has("/maintenance"), types.StringNull())
	unset(&m.Retired, config.Retired, state.Retired, before.has("/retired"), types.BoolValue(false))
	unset(&m.RetiredReason, config.RetiredReason, state.RetiredReason, before.has("/retired"), types.StringNull())
	unset(&m.Protected, config.Protected, state.Protected, before.has("/protected"), types.BoolValue(false))
	unset(&m.ProtectedReason, config.ProtectedReason, state.ProtectedReason, before.has("/protected"), types.StringNull())
	unset(&m.DriverInfo, config.DriverInfo, state.DriverInfo, state.wroteDriverInfo(ctx, config, before), types.MapNull(types.StringType))
	unset(&m.Properties, config.Properties, state.Properties, before.has("/properties"), types.MapNull(types.StringType))
	unset(&m.RootDevice, config.RootDevice, state.RootDevice, before.has("/properties/"+rootDeviceKey), types.MapNull(types.StringType))
	unset(&m.Capabilities, config.Capabilities, state.Capabilities, before.has("/capabilities"), types.MapNull(types.StringType))
	unset(&m.Traits, config.Traits, state.Traits, before.has("/traits"), types.SetNull(types.StringType))
	unset(&m.Extra, config.Extra, state.Extra, before.has("/extra"), types.DynamicNull())
	unset(&m.Ports, config.Ports, state.Ports, before.has("/ports"), types.MapNull(portType))
	unset(&m.PowerState, config.PowerState, state.PowerState, false, types.StringNull())
	unset(&m.TargetState, config.TargetState, state.TargetState, false, types.StringNull())
	if config.BMC.IsNull() {
		unset(&m.Driver, config.Driver, state.Driver, false, types.StringNull())
	}
	if config.Maintenance.IsNull() && state.MaintenanceReason.ValueString() == ironic.ReasonChanging { // a killed run has left it
		m.Maintenance, m.MaintenanceReason = types.BoolValue(false), types.StringNull()
	}
	m.keepUnmanagedPorts(ctx, config, state)
	m.keepUnmanagedInterfaces(ctx, config, state, before)
	for _, volatile := range []struct{ value, before *types.String }{
		{&m.LastError, &state.LastError},
		{&m.Fault, &state.Fault},
		{&m.InstanceUUID, &state.InstanceUUID},
		{&m.AllocationID, &state.AllocationID},
		{&m.ProvisionState, &state.ProvisionState},
	} {
		*volatile.value = *volatile.before
	}
	m.Inventory, m.PowerManaged = state.Inventory, state.PowerManaged
	if !m.Driver.Equal(state.Driver) || !m.DriverInfo.Equal(state.DriverInfo) || !m.BMC.Equal(state.BMC) {
		m.PowerManaged = types.BoolUnknown()
		if config.powerManaged(ctx).ValueBool() {
			m.PowerManaged = types.BoolValue(true)
		} // else what others have put into driver_info may do
	}
}

// wroteDriverInfo reports whether driver_info itself was in the configuration before: an import fills it, and bmc and
// driver_info_wo manage keys of it too.
func (m *hostModel) wroteDriverInfo(ctx context.Context, config *hostModel, before managed) bool {
	others := config.secrets(ctx)
	m.bmcSettings(ctx, others)
	for key := range stringMap(m.DriverInfo) {
		path := "/driver_info/" + key
		if _, other := others[path]; !other && slices.Contains(before, path) {
			return true
		}
	}
	return false
}

// unset plans an attribute that the configuration lacks: gone if it was there before, else as it is.
func unset[T attr.Value](plan *T, config, state T, was bool, gone T) {
	switch {
	case !config.IsNull():
	case was:
		*plan = gone
	default:
		*plan = state
	}
}

// keepUnmanagedPorts plans the attributes of ports that the configuration lacks.
func (m *hostModel) keepUnmanagedPorts(ctx context.Context, config, state *hostModel) {
	wanted, had := config.ports(ctx), state.ports(ctx)
	if wanted == nil {
		return
	}
	for mac, port := range wanted {
		old, exists := had[mac]
		if port.PXEEnabled.IsNull() {
			port.PXEEnabled = types.BoolUnknown()
			if exists {
				port.PXEEnabled = old.PXEEnabled
			}
		}
		if port.PhysicalNetwork.IsNull() && exists {
			port.PhysicalNetwork = old.PhysicalNetwork
		}
		if port.LocalLinkConnection.IsNull() && exists {
			port.LocalLinkConnection = old.LocalLinkConnection
		}
		wanted[mac] = port
	}
	m.Ports = portsValue(ctx, wanted)
}

// keepUnmanagedInterfaces plans the interfaces: as written, or as the scheme of the BMC's address says. Another driver, or one
// that is not written any more, brings a default that only Ironic knows.
func (m *hostModel) keepUnmanagedInterfaces(ctx context.Context, config, state *hostModel, before managed) {
	if config.Interfaces.IsUnknown() {
		return
	}
	settings := config.settings(ctx)
	values := map[string]attr.Value{}
	for name, old := range state.Interfaces.Attributes() {
		path := "/" + name + "_interface"
		written := config.Interfaces.Attributes()[name]
		setting, set := settings[path].(string)
		switch {
		case written != nil && !written.IsNull():
			values[name] = written
		case set:
			values[name] = types.StringValue(setting)
		case !m.Driver.Equal(state.Driver) || before.has(path):
			values[name] = types.StringUnknown()
		default:
			values[name] = old
		}
	}
	m.Interfaces = types.ObjectValueMust(interfacesType, values)
}

// planWalk plans the steps that the node still has to take, and warns of what they do to the machine.
func (h *host) planWalk(ctx context.Context, plan, config, state *hostModel, inspected bool, diags *diag.Diagnostics) {
	if plan.TargetState.ValueString() == targetEnroll && state.TargetState.ValueString() != targetEnroll && !state.TargetState.IsNull() {
		diags.AddAttributeError(path.Root("target_state"), "No way back", "A node cannot return to enroll. Leave target_state as it is, or delete the host.")
		return
	}
	if isFalse(state.PowerManaged) && plan.PowerManaged.Equal(state.PowerManaged) {
		if !plan.TargetState.Equal(state.TargetState) || !plan.PowerState.Equal(state.PowerState) {
			warnUnmanaged(diags, plan)
		}
		return
	}
	if isOccupied(state.node()) && isSet(config.PowerState) && isSet(state.PowerState) && !config.PowerState.Equal(state.PowerState) {
		plan.PowerState = state.PowerState
		diags.AddAttributeWarning(path.Root("power_state"), "Power is left to the deployment", fmt.Sprintf("Something is deployed on host %s: its metal_deployment decides. "+
			"It is %s, and stays so; power_state = %s counts when nothing is deployed on it.", plan.describe(), state.PowerState.ValueString(), config.PowerState))
	}
	steps := stepsFrom(state, plan, config, inspected)
	if steps.withheld {
		diags.AddWarning("Host is used by OneView", fmt.Sprintf("metal-oneview sync has taken host %s out of service, because a OneView user has its server. "+
			"It stays as it is until it is freed; then metal-oneview sync cleans it and makes it available.", plan.describe()))
	}
	if steps.walks {
		plan.planWalked(config, state)
	}
	if steps.inspects {
		plan.Inventory = types.ObjectUnknown(inventoryType)
	}
	h.warnBoot(ctx, plan, steps.inspects, steps.walks && slices.Contains(plan.goals(), ironic.GoalAvailable), diags)
	if steps.switches {
		warnPower(diags, plan)
	}
}

// planWalked plans what a walk over provision states changes. An error and a fault that are not there stay away.
func (m *hostModel) planWalked(config, state *hostModel) {
	m.ProvisionState = types.StringUnknown()
	for plan, before := range map[*types.String]types.String{&m.LastError: state.LastError, &m.Fault: state.Fault} {
		if !before.IsNull() {
			*plan = types.StringUnknown()
		}
	}
	if config.PowerState.IsNull() {
		m.PowerState = types.StringUnknown()
	}
}

// warnUnmanaged warns that what is planned for power and preparation cannot be done without a BMC.
func warnUnmanaged(diags *diag.Diagnostics, plan *hostModel) {
	diags.AddWarning("Host without BMC",
		fmt.Sprintf("Ironic knows no BMC of host %s: its power is left alone and it is not cleaned. Give bmc, or driver_info.", plan.describe()))
}

func warnInspection(diags *diag.Diagnostics, plan *hostModel) {
	is := "is"
	if plan.Inspect.IsUnknown() {
		is = "may be"
	}
	diags.AddAttributeWarning(path.Root("inspect"), "Inspection boots the machine", fmt.Sprintf("Host %s %s inspected: it boots for that.", plan.describe(), is))
}

func warnPower(diags *diag.Diagnostics, plan *hostModel) {
	is := "is switched " + plan.PowerState.ValueString()
	if plan.PowerState.IsUnknown() {
		is = "may be switched on or off"
	}
	diags.AddAttributeWarning(path.Root("power_state"), "Power is switched", fmt.Sprintf("Host %s %s.", plan.describe(), is))
}

// checkVersions refuses what the server's API does not have.
func (h *host) checkVersions(ctx context.Context, config *hostModel, diags *diag.Diagnostics) {
	h.requires(ctx, diags,
		feature{!config.ResourceClass.IsNull(), 21, path.Root("resource_class")},
		feature{!config.Traits.IsNull(), 37, path.Root("traits")},
		feature{!config.ConductorGroup.IsNull(), 46, path.Root("conductor_group")},
		feature{!config.AutomatedClean.IsNull(), 47, path.Root("automated_clean")},
		feature{!config.Protected.IsNull(), 48, path.Root("protected")},
		feature{!config.Owner.IsNull(), 50, path.Root("owner")},
		feature{!config.Description.IsNull(), 51, path.Root("description")},
		feature{!config.Retired.IsNull(), 61, path.Root("retired")},
		feature{!config.Lessee.IsNull(), 65, path.Root("lessee")},
		feature{!config.Shard.IsNull(), 82, path.Root("shard")},
		feature{isSet(config.Interfaces) && !config.Interfaces.Attributes()["firmware"].IsNull(), 86, path.Root("interfaces").AtName("firmware")},
	)
}
