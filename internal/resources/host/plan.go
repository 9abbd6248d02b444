package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
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
	before := readManaged(ctx, req.Private)
	if req.Plan.Raw.IsNull() {
		h.planDestroy(ctx, state, before, &resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.settle(ctx, &config, state, before)
	plan.planPorts(ctx, &config, state, before)
	plan.planGroups(ctx, &config, state, before)
	h.checkDriver(ctx, &plan, &config, state, &resp.Diagnostics)
	config.refuseBootAlone(ctx, state, &resp.Diagnostics)
	decided := h.planSteps(ctx, &plan, &config, state, readNotes(ctx, req.Private), &resp.Diagnostics)
	if state != nil {
		h.planIdentity(ctx, &plan, &config, state, before, &resp.Diagnostics)
	}
	plan.refuseKeptNames(ctx, &config, &resp.Diagnostics)
	plan.refuseOtherNetworks(ctx, &resp.Diagnostics)
	if h.Known() && (state == nil || !req.Plan.Raw.Equal(req.State.Raw)) {
		h.checkVersions(ctx, &config, &resp.Diagnostics)
		h.warnBondModes(ctx, &config, state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if state != nil && resp.Plan.Raw.Equal(req.State.Raw) {
		config.refuseUnsent(ctx, before, &resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(writePlan(ctx, resp.Private, decided)...)
	if h.Known() {
		h.foreseeRefusals(ctx, &config, state, req, resp)
		expect.ExpectHost(h.Site, plan.expected(ctx))
	}
}

// planSteps decides about the host, shows that, and plans the computed values. state is nil for a new host.
func (h *host) planSteps(ctx context.Context, plan, config, state *model, notes enroll.Notes, diags *diag.Diagnostics) enroll.Plan {
	q, seen := question{plan: plan, config: config, state: state, wish: plan.wish(ctx, config, state), diags: diags}, enroll.Seen{New: true}
	if state != nil {
		seen, q.wish.Writes = state.seen(ctx, notes), !framework.EqualModels(plan, state)
	} else {
		q.wish.SharedWithout = h.sharedWithout(plan, config)
	}
	decided := h.decide(ctx, q, seen)
	framework.Show(diags, decided.Notices...)
	plan.foresee(decided.Forecast, state)
	return decided
}

// expected returns what other resources of the run may expect of the host.
func (m *model) expected(ctx context.Context) expect.ExpectedHost {
	e := expect.ExpectedHost{
		ID: m.ID.ValueString(), Name: m.Name.ValueString(), Class: m.ResourceClass.ValueString(), Target: m.TargetState.ValueString(),
		Network: m.plannedInterface(ctx, "network"), Boot: m.plannedInterface(ctx, "boot"), BootPort: m.hasBootPort(ctx),
	}
	if !m.DisablePowerOff.IsUnknown() {
		e.NeverOff = m.DisablePowerOff.ValueBoolPointer()
	}
	return e
}

// checkDriver refuses a driver that the site lacks. state is nil for a new host.
func (h *host) checkDriver(ctx context.Context, plan, config, state *model, diags *diag.Diagnostics) {
	if !h.Known() || !framework.IsSet(plan.Driver) || state != nil && plan.Driver.Equal(state.Driver) {
		return
	}
	if err := expect.CheckDriver(ctx, h.Site, plan.Driver.ValueString()); err != nil {
		summary, detail := failure.Explain("plan host "+plan.describe(), err)
		framework.Show(diags, decide.Refuse(config.addressAt(), summary, detail))
	}
}

// powerManaged returns whether a configuration names a BMC; unknown if that is known only after apply. A driver that needs none
// counts as unknown, because the apply may find that Ironic has discovered the machine.
func (m *model) powerManaged(ctx context.Context) types.Bool {
	if !framework.FullyKnown(ctx, m.BMC, m.Driver, m.DriverInfo, m.DriverInfoWO, m.PowerControl) {
		return types.BoolUnknown()
	}
	s := m.hostSettings(ctx, nil).Enrollment()
	if managed := ironic.AddressKey(s.Keys("driver_info")) != ""; managed || !machine.PowerManaged(&ironic.Node{Driver: s.Text("driver"), Name: s.Text("name")}) {
		return types.BoolValue(managed)
	}
	return types.BoolUnknown()
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

// settle plans the values that the configuration omits, except those of ports: it removes those that the prior configuration had, and keeps all others.
// state is nil for a new host.
func (m *model) settle(ctx context.Context, config, state *model, before managed) {
	if _, bmc := config.scheme(ctx); bmc != nil {
		m.Driver = types.StringValue(bmc.Driver)
	}
	for _, a := range attributes {
		if a.plan != nil {
			a.plan(ctx, m, config, state, before)
		}
	}
	if state == nil {
		m.PowerManaged = config.powerManaged(ctx)
		return
	}
	m.PendingChanges = state.PendingChanges
	if config.Maintenance.IsNull() && state.MaintenanceReason.ValueString() == machine.ReasonChanging { // a killed run has set it
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

// warnBondModes warns of new network data with a bond mode that this version of Ironic calls by another name.
func (h *host) warnBondModes(ctx context.Context, config, state *model, diags *diag.Diagnostics) {
	if !framework.IsSet(config.NetworkData) || state != nil && config.NetworkData.Equal(state.NetworkData) {
		return
	}
	if server, err := h.Site.Ironic.Highest(ctx); err == nil { // checkVersions has reported an error
		framework.Show(diags, enroll.WarnBondModes(framework.JSONDocument(config.NetworkData), server)...)
	}
}
