package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// ModifyPlan plans the values that the configuration omits and the steps that the node still needs, and warns of their effects.
func (h *host) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config model
	var state *model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if state != nil && state.isImported() {
		framework.RefuseUnread(&resp.Diagnostics, "host "+state.label())
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.IsNull() {
		h.planDestroy(ctx, state, readManaged(ctx, req.Private), &resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if block := config.bmc(ctx); block != nil && framework.IsSet(block.Address) {
		if bmc, err := ironic.ParseBMC(block.Address.ValueString()); err == nil {
			plan.Driver = types.StringValue(bmc.Driver)
		}
	}
	h.planDriver(ctx, &plan, &config, state, &resp.Diagnostics)
	config.refuseBootAlone(ctx, state, &resp.Diagnostics)
	changes := state == nil || !req.Plan.Raw.Equal(req.State.Raw)
	if state == nil {
		plan.settle(ctx, &config, nil, nil)
		h.planNewHardware(ctx, &plan, &config, &resp.Diagnostics)
		h.planNew(ctx, &plan, &config, &resp.Diagnostics)
		h.planUnguarded(&plan, &config, &resp.Diagnostics)
	} else {
		plan.settle(ctx, &config, state, readManaged(ctx, req.Private))
		known := h.findHardware(ctx, &plan, &config, state, readNotes(ctx, req.Private).of(ctx, &config), &resp.Diagnostics)
		resp.Diagnostics.Append(writeFound(ctx, resp.Private, known.found)...)
		h.planWalk(ctx, &plan, &config, state, known, &resp.Diagnostics)
		h.planTemporary(ctx, &plan, &resp.Diagnostics)
		h.planIdentity(ctx, &plan, &config, state, readManaged(ctx, req.Private), &resp.Diagnostics)
	}
	plan.refusePowerOff(&config, &resp.Diagnostics)
	plan.refuseKeptNames(ctx, &config, &resp.Diagnostics)
	plan.refuseOtherNetworks(ctx, &resp.Diagnostics)
	if changes && h.Known() {
		h.checkVersions(ctx, &config, &resp.Diagnostics)
		h.warnBondModes(ctx, &config, state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if state != nil && resp.Plan.Raw.Equal(req.State.Raw) {
		config.refuseUnsent(ctx, readManaged(ctx, req.Private), &resp.Diagnostics)
	}
	if h.Known() && !resp.Plan.Raw.Equal(req.State.Raw) {
		h.foreseeRefusals(ctx, &config, state, req, resp)
		expected := provision.ExpectedHost{ID: plan.ID.ValueString(), Name: plan.Name.ValueString(), Class: plan.ResourceClass.ValueString()}
		expected.Target, expected.Network, expected.Boot = plan.TargetState.ValueString(), plan.plannedInterface(ctx, "network"), plan.plannedInterface(ctx, "boot")
		expected.BootPort = plan.hasBootPort(ctx)
		if !plan.DisablePowerOff.IsUnknown() {
			expected.NeverOff = plan.DisablePowerOff.ValueBoolPointer()
		}
		h.Client.ExpectHost(expected)
	}
}

// planNew plans a new host.
func (h *host) planNew(ctx context.Context, plan, config *model, diags *diag.Diagnostics) {
	if config.BMC.IsNull() && config.Driver.IsNull() && config.PowerControl.IsNull() {
		diags.AddError("No BMC and no driver", "A new metal_host needs bmc, or driver with driver_info, or power_control = \"agent\". Set one of them, so that Ironic can reach the machine. "+
			"If Ironic has a node of the machine already, import that.")
		return
	}
	if config.TargetState.IsNull() {
		plan.TargetState = types.StringValue(string(provision.GoalManageable))
	}
	if framework.IsFalse(plan.PowerManaged) && !plan.byAgent() {
		plan.ProvisionState = types.StringValue(targetEnroll)
		plan.warnUnmanaged(config, diags)
	} else if (plan.mayBeInspected() || slices.Contains(plan.goals(), provision.GoalAvailable)) && h.warnTaken(ctx, plan, config, diags) {
		return
	}
	h.planTakeOver(ctx, plan, config, diags)
	if inspects := plan.mayBeInspected(); (inspects || plan.mayBeCleaned()) && !framework.IsFalse(plan.PowerManaged) {
		h.warnNoPort(ctx, plan, config, nil, inspects, diags)
	}
}

// powerManaged returns whether a configuration names a BMC; unknown if that is known only after apply. A driver that needs none
// counts as unknown, because the apply may find that Ironic has discovered the machine.
func (m *model) powerManaged(ctx context.Context) types.Bool {
	if !framework.FullyKnown(ctx, m.BMC, m.Driver, m.DriverInfo, m.DriverInfoWO, m.PowerControl) {
		return types.BoolUnknown()
	}
	e := m.enrollment(ctx)
	if managed := ironic.AddressKey(e.DriverInfo) != ""; managed || !provision.PowerManaged(&ironic.Node{Driver: e.Driver, Name: e.Name}) {
		return types.BoolValue(managed)
	}
	return types.BoolUnknown()
}

// warnBoot warns of the steps that boot an existing machine or, if OneView users have it, that the apply does not take them.
func (h *host) warnBoot(ctx context.Context, plan, config, state *model, steps steps, becomesAvailable bool, diags *diag.Diagnostics) {
	if (steps.inspects || becomesAvailable) && h.warnTaken(ctx, plan, config, diags) {
		return
	}
	cleans := becomesAvailable && plan.mayBeCleaned()
	switch {
	case cleans:
		warnCleaning(diags, plan, steps.inspects)
	case steps.inspects:
		warnInspection(ctx, diags, plan, steps.again)
	}
	if cleans || steps.inspects || steps.configures {
		h.warnNoPort(ctx, plan, config, state, steps.inspects, diags)
	}
}

// mayBeInspected reports whether Ironic inspects the machine of a new host.
func (m *model) mayBeInspected() bool {
	return m.mayInspect() && m.TargetState.ValueString() != targetEnroll
}

// mayBeCleaned reports whether Ironic cleans the machine on the way to the planned target state.
func (m *model) mayBeCleaned() bool {
	return slices.Contains(m.goals(), provision.GoalAvailable) && !framework.IsFalse(m.AutomatedClean)
}

// warnCleaning warns of cleaning, and of the inspection before it. All hosts have the same summary, so that Terraform folds the warnings
// into one.
func warnCleaning(diags *diag.Diagnostics, plan *model, inspects bool) {
	becomes := fmt.Sprintf("Host %s becomes available.", plan.describe())
	if plan.TargetState.IsUnknown() {
		becomes = fmt.Sprintf("The target_state of host %s is not known yet. It may become available.", plan.describe())
	}
	diags.AddAttributeWarning(path.Root("target_state"), cleaningSummary, fmt.Sprintf("%s Ironic %s it on the way: the machine boots, and loses the data that the site's clean steps erase.",
		becomes, plan.preparation(inspects, true)))
}

const cleaningSummary = "Cleaning erases data"

// preparation returns what Ironic does with a machine, such as "inspects and cleans"; "" if nothing.
func (m *model) preparation(inspects, cleans bool) string {
	var does []string
	if inspects {
		does = append(does, "inspects")
	}
	if cleans {
		does = append(does, "cleans")
	}
	return strings.Join(does, " and ")
}

// describe names the host in a plan's messages.
func (m *model) describe() string {
	switch {
	case framework.IsSet(m.Name):
		return m.Name.ValueString()
	case framework.IsSet(m.ID):
		return m.ID.ValueString()
	}
	return "(name not known yet)"
}

// settle plans the values that the configuration omits: it removes those that the prior configuration had, and keeps all others.
// state is nil for a new host.
func (m *model) settle(ctx context.Context, config, state *model, before managed) {
	for _, a := range attributes {
		if a.plan != nil {
			a.plan(ctx, m, config, state, before)
		}
	}
	m.planPorts(ctx, config, state, before)
	m.planGroups(ctx, config, state, before)
	if state == nil {
		m.PowerManaged = config.powerManaged(ctx)
		return
	}
	if config.Maintenance.IsNull() && state.MaintenanceReason.ValueString() == provision.ReasonChanging { // a killed run has set it
		m.Maintenance, m.MaintenanceReason = types.BoolValue(false), types.StringNull()
	}
	m.PowerManaged = state.PowerManaged
	if m.byAgent() {
		m.PowerManaged = types.BoolValue(false)
		return
	}
	if !m.Driver.Equal(state.Driver) || !m.DriverInfo.Equal(state.DriverInfo) || !m.BMC.Equal(state.BMC) {
		m.PowerManaged = types.BoolUnknown()
		if config.powerManaged(ctx).ValueBool() {
			m.PowerManaged = types.BoolValue(true)
		} // else the keys of driver_info that others have set may name a BMC
	}
}

// planWalk plans the steps that the node still needs, and warns of their effects on the machine.
func (h *host) planWalk(ctx context.Context, plan, config, state *model, known notes, diags *diag.Diagnostics) {
	if plan.TargetState.ValueString() == targetEnroll && state.TargetState.ValueString() != targetEnroll && !state.TargetState.IsNull() {
		diags.AddAttributeError(path.Root("target_state"), "Node cannot return to enroll", "A node cannot return to state enroll. Leave target_state as it is, or destroy the host.")
		return
	}
	if isOccupied(state.node()) && framework.IsSet(state.ResourceClass) && framework.IsSet(plan.ResourceClass) && !plan.ResourceClass.Equal(state.ResourceClass) {
		diags.AddAttributeError(path.Root("resource_class"), "Class of a deployed node is fixed", fmt.Sprintf("Host %s is in state %q. Ironic changes the resource class of a node only while nothing is deployed on it. "+
			"Destroy its metal_deployment first, in an apply of its own, or leave resource_class as it is (%s).", plan.describe(), state.ProvisionState.ValueString(), state.ResourceClass.ValueString()))
		return
	}
	if plan.planInspection(ctx, state, known, diags) || plan.planRetirement(config, state, known, diags) {
		return
	}
	if framework.IsFalse(state.PowerManaged) && plan.PowerManaged.Equal(state.PowerManaged) && !plan.byAgent() {
		plan.planHardware(ctx, config, state, known, steps{}, diags)
		plan.warnUnmanaged(config, diags)
		return
	}
	if isOccupied(state.node()) && framework.IsSet(config.PowerState) && framework.IsSet(state.PowerState) && !config.PowerState.Equal(state.PowerState) {
		plan.PowerState = state.PowerState
		if !slices.Contains(known.power, config.PowerState.ValueString()) { // what was applied before the deployment is meant for after it
			diags.AddAttributeWarning(path.Root("power_state"), "Deployment controls the power", fmt.Sprintf("Host %s is deployed, so its metal_deployment controls its power: the machine stays %s. "+
				"The host's power_state = %s takes effect when the host is not deployed any more. To switch the machine now, set power_state on its metal_deployment.",
				plan.describe(), state.PowerState.ValueString(), config.PowerState))
		}
	}
	plan.planBoot(config, state, diags)
	steps := stepsFrom(state, plan, config, known)
	if steps.heldByOneView {
		if framework.IsSet(config.PowerState) && framework.IsSet(state.PowerState) {
			plan.PowerState = state.PowerState // it is not switched
		}
		diags.AddWarning("Host is used by OneView", fmt.Sprintf("metal oneview sync has taken host %s out of service, because a OneView user has its server. "+
			"It stays out of service until the server is free; then metal oneview sync cleans it and makes it available.", plan.describe()))
	}
	plan.warnStray(config, state, steps, diags)
	if steps.walks {
		plan.planWalked(config, state)
	}
	leaves := plan.planHardware(ctx, config, state, known, steps, diags)
	if leaves && !steps.inspects && h.warnTaken(ctx, plan, config, diags) {
		return
	}
	h.warnBoot(ctx, plan, config, state, steps, !leaves && steps.walks && slices.Contains(plan.goals(), provision.GoalAvailable), diags)
	if steps.switches {
		warnPower(diags, plan)
	}
	if steps.learnsPower {
		plan.PowerState = types.StringUnknown()
		diags.AddAttributeWarning(path.Root("power_state"), "Power is switched", fmt.Sprintf("An interrupted run has made host %s available. Ironic does not know its power state, "+
			"and allocates no such node. The host is switched %s.", plan.describe(), plan.restingPower()))
	}
}

// restingPower returns the power state of a machine that Ironic has cleaned.
func (m *model) restingPower() string {
	if m.DisablePowerOff.ValueBool() {
		return framework.PowerOn
	}
	return framework.PowerOff
}

// planWalked plans the values that a walk over provision states changes. An empty last_error or fault stays empty.
func (m *model) planWalked(config, state *model) {
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

// warnUnmanaged warns that Ironic cannot prepare or switch a machine without a BMC, if the configuration demands that and the
// machine is not deployed.
func (m *model) warnUnmanaged(config *model, diags *diag.Diagnostics) {
	target, state := m.TargetState.ValueString(), m.ProvisionState.ValueString()
	var missed []string
	if target != targetEnroll && !provision.Settled(provision.Goal(target), ironic.State(state)) {
		missed = append(missed, fmt.Sprintf("it stays in state %s and does not become %s", state, cmp.Or(target, "what target_state says")))
	}
	if framework.IsSet(config.PowerState) {
		missed = append(missed, "its power is not switched")
	}
	if len(missed) == 0 || provision.Deployed(m.node()) {
		return
	}
	diags.AddWarning("Host without BMC", fmt.Sprintf("Ironic knows no BMC of host %s: %s. Give the host a bmc with address, username and password_wo, a driver with its driver_info, or power_control = \"agent\". "+
		"Until then, Ironic can only enroll the machine; target_state = \"enroll\" without power_state ends this warning.", m.describe(), strings.Join(missed, ", and ")))
}

func warnPower(diags *diag.Diagnostics, plan *model) {
	is := "is switched " + plan.PowerState.ValueString()
	if plan.PowerState.IsUnknown() {
		is = "may be switched on or off"
	}
	diags.AddAttributeWarning(path.Root("power_state"), "Power is switched", fmt.Sprintf("Host %s %s.", plan.describe(), is))
}

// checkVersions refuses attributes that the server's API does not have.
func (h *host) checkVersions(ctx context.Context, config *model, diags *diag.Diagnostics) {
	features := config.portFeatures(ctx)
	for _, a := range attributes {
		if a.feature != nil {
			features = append(features, a.feature(config))
		}
	}
	h.Requires(ctx, diags, features...)
}

// warnBondModes warns of new network data with a bond mode that this version of Ironic calls by another name. It does not refuse it,
// because a distributor may have corrected that version.
func (h *host) warnBondModes(ctx context.Context, config, state *model, diags *diag.Diagnostics) {
	if !framework.IsSet(config.NetworkData) || state != nil && config.NetworkData.Equal(state.NetworkData) {
		return
	}
	server, err := h.Client.Highest(ctx)
	if err != nil {
		return // checkVersions has reported it
	}
	var lines []string
	for _, fault := range ironic.CheckBondModes(framework.JSONDocument(config.NetworkData), server) {
		lines = append(lines, "  "+fault.Path+": "+fault.Must)
	}
	if len(lines) > 0 {
		diags.AddAttributeWarning(path.Root("network_data"), "Bond mode has another name in this Ironic", "Ironic 21.4 calls the bond mode of LACP 802.1ad, by mistake, and Ironic 39.0 calls it 802.3ad. "+
			fmt.Sprintf("The apply will fail, unless this Ironic (API %s) was patched:\n\n%s\n\nThe software in the ramdisk gets the name as it is written here, and may not know 802.1ad.", server, strings.Join(lines, "\n")))
	}
}
