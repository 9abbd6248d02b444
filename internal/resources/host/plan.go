package host

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
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
	if state != nil && h.RefuseLost(ctx, kindHost, state.ID.ValueString(), "", req.Plan.Raw.IsNull(), &resp.Diagnostics) {
		return
	}
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	before := kept.Managed
	if req.Plan.Raw.IsNull() {
		kept.Superseded = h.Known() && h.Site.Run.HasTakenOver(notes.MarkCreation, state.ID.ValueString())
		h.planDestroy(ctx, state, before, &resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() || h.refusesTwin(state, &resp.Diagnostics) ||
		state == nil && h.RefuseLost(ctx, kindHost, "", config.Name.ValueString(), false, &resp.Diagnostics) {
		return
	}
	if state != nil && (h.planRestore(ctx, state, kept, req, resp) || h.planReturn(ctx, state, kept, req, resp)) {
		return
	}
	h.AgreeOnRollout(ctx, rolloutAt, plan.rollout(), &resp.Diagnostics)
	plan.settle(ctx, &config, state, before)
	plan.planGroups(ctx, &config, state, before)
	plan.planPorts(ctx, &config, state, before)
	h.checkDriver(ctx, &plan, &config, state, &resp.Diagnostics)
	h.checkInterfaces(ctx, &plan, &config, state, &resp.Diagnostics)
	who := plan.intended(ctx, &config, state, before)
	missing := state != nil && framework.IsMissing(ctx, req.Private)
	decided := h.planSteps(ctx, question{plan: &plan, config: &config, state: state, who: who, diags: &resp.Diagnostics}, missing,
		kept.notes())
	if state == nil && decided.Costs(decide.Clean) && h.MakesAnew(kindHost, "", config.Name.ValueString()) {
		plan.Restores = types.Int64Unknown() // a plan of the apply, which has read nothing, knows no number
	}
	if state != nil && !missing {
		h.planIdentity(ctx, &config, state, who, &resp.Diagnostics)
	}
	h.planCabling(ctx, question{plan: &plan, config: &config, state: state, diags: &resp.Diagnostics}, *kept)
	if h.Known() && (state == nil || !req.Plan.Raw.Equal(req.State.Raw)) {
		h.checkVersions(ctx, &config, &resp.Diagnostics)
		h.warnBondModes(ctx, &config, state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if state != nil && resp.Plan.Raw.Equal(req.State.Raw) {
		config.refuseUnsent(ctx, before, &resp.Diagnostics)
		return
	}
	kept.Plan = &decided
	if h.Known() {
		h.foreseeRefusals(ctx, &config, state, before, req, resp)
		h.tellRun(ctx, &plan, state, decided)
	}
}

// tellRun tells the other resources of the run what becomes of the host.
func (h *host) tellRun(ctx context.Context, plan, state *model, decided hosts.Plan) {
	expected := plan.expected(ctx)
	expected.Target = decided.Reaches(expected.Target)
	expected.Ports = state == nil || !plan.Ports.Equal(state.Ports) || !plan.PortGroups.Equal(state.PortGroups) ||
		decided.Has(hosts.DoInspect, hosts.DoInspectAgain)
	expected.Disturbs = slices.ContainsFunc(decided.Steps, func(s hosts.Step) bool { return s.Cost > decide.Free })
	expected.Freed, expected.KeepsDisks = decided.Forecast.Freed, state != nil && plan.keepsMore(ctx, state)
	expected.Disks = hintsOf(ctx, plan.SkipBlockDevices)
	expect.ExpectHost(h.Site, expected)
}

func (h *host) refusesTwin(state *model, diags *diag.Diagnostics) bool {
	if state == nil || !h.Known() || !hosts.HasTwin(h.Site, state.ID.ValueString()) {
		return false
	}
	framework.Show(diags, hosts.Twin(state.label()))
	return true
}

// planSteps decides about the host, shows that, and plans the computed values. missing: Ironic has no node of it any more.
func (h *host) planSteps(ctx context.Context, q question, missing bool, notes hosts.Notes) hosts.Plan {
	seen, state := hosts.Seen{New: true}, q.state
	if missing { // the node is new to Ironic
		q.state = nil
		seen.Missing, seen.Cleanings = ironic.State(state.ProvisionState.ValueString()), state.Cleanings.ValueInt64()
		seen.Restores, seen.OnMachine = state.Restores.ValueInt64(), notes.OnMachine
	}
	q.wish = h.wishOf(ctx, q.plan, q.config, q.state)
	q.wish.Identity = hosts.Identified{
		Identity: q.who.Identity(), Moves: q.who.Moves || missing, ByBMC: !q.config.BMC.IsNull(), Bonds: q.config.bonds(ctx),
	}
	if q.state != nil {
		seen, q.wish.Writes = h.seenOf(ctx, q.state, notes), !framework.EqualModels(q.plan, q.state)
	} else {
		q.wish.SharedWithout = h.sharedWithout(q.plan, q.config)
	}
	decided := h.decide(ctx, q, seen)
	framework.Show(q.diags, decided.Notices...)
	q.plan.foresee(decided.Forecast, state)
	if missing {
		q.plan.ProvisionState, q.plan.LastError, q.plan.Fault = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		if q.config.PowerState.IsNull() {
			q.plan.PowerState = types.StringUnknown()
		}
	}
	return decided
}

func (m *model) expected(ctx context.Context) expect.ExpectedHost {
	e := expect.ExpectedHost{
		ID: m.ID.ValueString(), Name: m.Name.ValueString(), Class: m.ResourceClass.ValueString(), Target: m.TargetState.ValueString(),
		Network: m.plannedInterface(ctx, "network"), Boot: m.plannedInterface(ctx, "boot"), Deploy: m.plannedInterface(ctx, "deploy"),
		Rescue: m.plannedInterface(ctx, "rescue"), BootPort: m.hasBootPort(ctx),
	}
	if !m.DisablePowerOff.IsUnknown() {
		e.NeverOff = m.DisablePowerOff.ValueBoolPointer()
	}
	if !m.Maintenance.IsUnknown() {
		e.Maintenance = m.Maintenance.ValueBoolPointer()
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

// checkInterfaces refuses hardware interfaces that the site lacks, those of the configuration and those that the scheme of bmc.address
// implies. state is nil for a new host.
func (h *host) checkInterfaces(ctx context.Context, plan, config, state *model, diags *diag.Diagnostics) {
	if !h.Known() || !framework.IsSet(plan.Driver) {
		return
	}
	for _, kind := range ironic.HardwareInterfaces {
		name := plan.plannedInterface(ctx, kind)
		if state != nil && plan.Driver.Equal(state.Driver) && name == state.plannedInterface(ctx, kind) {
			continue
		}
		if err := expect.CheckInterface(ctx, h.Site, plan.Driver.ValueString(), kind, name); err != nil {
			at := decide.At("hardware_interfaces") // a CLI shows no line for what is inside
			if config.interfaces()[kind] == "" {
				at = config.addressAt()
			}
			summary, detail := failure.Explain("plan host "+plan.describe(), err)
			framework.Show(diags, decide.Refuse(at, summary, detail))
		}
	}
}

// powerManaged returns whether a configuration names a BMC; unknown if that is known only after apply. A driver that needs none
// counts as unknown, because the apply may find that Ironic has discovered the machine.
func (m *model) powerManaged(ctx context.Context) types.Bool {
	if !framework.FullyKnown(ctx, m.BMC, m.Driver, m.DriverInfo, m.DriverInfoWO, m.PowerControl) {
		return types.BoolUnknown()
	}
	s := m.hostSettings(ctx, nil).Enrollment()
	if managed := driverinfo.AddressKey(s.Keys("driver_info")) != ""; managed ||
		!machine.PowerManaged(&ironic.Node{Driver: s.Text("driver"), Name: s.Text("name"), PowerInterface: s.Text("power_interface")}) {
		return types.BoolValue(managed)
	}
	return types.BoolUnknown()
}

// settle plans the values that the configuration omits, except those of ports: it removes those that the prior configuration had, and keeps
// all others. state is nil for a new host.
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
	if m.PendingChanges = state.PendingChanges; m.PendingChanges.IsNull() {
		m.PendingChanges = m.pendingValue(nil)
	}
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
		framework.Show(diags, hosts.WarnBondModes(framework.JSONDocument(config.NetworkData), server)...)
	}
}

// planDestroy says what destroying a host does to its node, and tells the other resources of the run that the node is deleted. Terraform
// may plan to destroy a host before it refreshes it, so planDestroy says nothing of a node that is gone.
func (h *host) planDestroy(ctx context.Context, state *model, before managed, diags *diag.Diagnostics) {
	foreign := false
	if h.Known() {
		_, err := h.Site.Ironic.NodeForRefresh(ctx, state.ID.ValueString())
		if err == nil {
			foreign, err = h.mayBeForeign(ctx, state.ID.ValueString(), before)
		}
		if err != nil {
			return // Delete reports it
		}
	}
	seen := state.seen(ctx, hosts.Notes{})
	seen.Foreign = foreign
	decided := hosts.Decide(hosts.Wish{
		Label: state.label(), Ends: true, OnDestroy: state.OnDestroy.ValueString(),
		ByAgent: state.byAgent(),
	}, seen)
	framework.Show(diags, decided.Notices...)
	if decided.Has(hosts.DoRemove) && h.Known() {
		h.ForeseeRefusals(ctx, diags, h.FindNode(state.ID.ValueString()), framework.Right{Rule: "node:delete"})
		hosts.PlanMove(h.Site, hosts.Intent{Candidate: hosts.Candidate{UUID: state.ID.ValueString()}, Ends: true})
		expect.EndHost(h.Site, state.ID.ValueString())
	}
}

// mayBeForeign reports whether a node was discovered and no configuration was ever applied to it.
func (h *host) mayBeForeign(ctx context.Context, id string, ours managed) (bool, error) {
	if ours != nil {
		return false, nil
	}
	return hosts.MayBeForeign(ctx, h.Site, id)
}

// wishOf returns what a plan asks for, with the defaults of the provider. state is nil for a new host.
func (h *host) wishOf(ctx context.Context, plan, config, state *model) hosts.Wish {
	w := plan.wish(ctx, config, state)
	w.HardwareDrift = config.drift(h.HardwareDrift)
	return w
}

// seenOf returns what a state has of the host, with the defaults of the provider.
func (h *host) seenOf(ctx context.Context, state *model, notes hosts.Notes) hosts.Seen {
	s := state.seen(ctx, notes)
	s.HardwareDrift = state.drift(h.HardwareDrift).V
	s.Undeploys = h.Known() && expect.Undeploys(h.Site, state.ID.ValueString())
	return s
}

// wish returns what a plan asks for. state is nil for a new host.
func (m *model) wish(ctx context.Context, config, state *model) hosts.Wish {
	hardware, known := config.hardware(ctx)
	live, _ := config.hardwareChanges()
	block := config.bmc(ctx)
	_, scheme := schemeOf(block)
	w := hosts.Wish{
		Label: m.describe(), OnDestroy: m.OnDestroy.ValueString(),
		Driver: framework.TextOf[string](m.Driver), Scheme: scheme, AddressAt: config.addressAt(), BMC: !m.BMC.IsNull(),
		AnyDriver: !config.BMC.IsNull() || !config.Driver.IsNull() || !config.PowerControl.IsNull(), NoPassword: block.lacksPassword(),
		NoUser: block != nil && block.Username.IsNull(), ByAgent: m.byAgent(), PowerManaged: framework.FlagOf(m.PowerManaged),
		Class:  m.ResourceClass.ValueString(),
		Target: framework.TextOf[string](m.TargetState), TargetSet: !config.TargetState.IsNull(), Inspect: framework.FlagOf(m.Inspect),
		Triggers: m.fingerprint(ctx), Replaced: replacedOf(ctx, config.Replaced),
		Power: framework.TextOf[string](config.PowerState), NeverOff: m.DisablePowerOff.ValueBool(),
		AutomatedClean: framework.FlagOf(m.AutomatedClean), Runbook: framework.TextOf[string](m.CleaningRunbook),
		BootMode: framework.TextOf[string](config.BootMode), SecureBoot: framework.FlagOf(config.SecureBoot),
		Console: framework.TextOf[string](config.Console), Maintenance: framework.FlagOf(config.Maintenance),
		Retired: framework.FlagOf(m.Retired), RetiredSet: framework.FlagOf(config.Retired), ReasonSet: !config.RetiredReason.IsNull(),
		Hardware: hardware, HardwareKnown: known, Expected: config.expectedHardware(ctx),
		Qualification:  config.qualification(ctx),
		ServicesActive: live, TakesTurns: framework.IsSet(config.rollout()),
		Interfaces: map[string]hosts.Interface{}, Skips: hintsOf(ctx, m.SkipBlockDevices),
		RootDevice: decide.Value[map[string]string]{V: framework.StringMap(m.RootDevice), Set: framework.IsSet(m.RootDevice)},
	}
	for _, kind := range ironic.HardwareInterfaces {
		w.Interfaces[kind] = m.hardwareInterface(ctx, config, state, kind)
	}
	if state == nil && config.TargetState.IsNull() && m.TargetState.IsUnknown() {
		w.Target = decide.Value[string]{} // Decide has the default
	}
	if state != nil {
		w.TraitsChange = !m.Traits.Equal(state.Traits)
		w.ConsoleMoves = !m.Driver.Equal(state.Driver) || m.plannedInterface(ctx, "console") != state.plannedInterface(ctx, "console")
		w.InterfacesMove = m.movesInterfaces(ctx, w.Interfaces, state)
		w.Held = m.Maintenance.ValueBool() && state.Fault.IsNull() && m.MaintenanceReason.ValueString() != machine.ReasonChanging
	}
	return w
}

func (m *model) seen(ctx context.Context, notes hosts.Notes) hosts.Seen {
	hardware, _ := m.hardware(ctx)
	address, scheme := m.scheme(ctx)
	return hosts.Seen{
		State: ironic.State(m.ProvisionState.ValueString()), Instance: m.InstanceID.ValueString(), Allocated: !m.AllocationID.IsNull(),
		OutOfService: sharing.OutOfService(m.node()), Fault: !m.Fault.IsNull(), LastError: !m.LastError.IsNull(),
		Power: framework.TextOf[string](m.PowerState), PowerManaged: framework.FlagOf(m.PowerManaged), Target: m.TargetState.ValueString(),
		Retired: m.Retired.ValueBool(), Runbook: framework.TextOf[string](m.CleaningRunbook),
		BMC: !m.BMC.IsNull(), Driver: m.Driver.ValueString(), Address: address, Scheme: scheme,
		BootInterface: framework.TextOf[string](m.BootInterface), Class: m.ResourceClass.ValueString(),
		BootMode: framework.TextOf[string](m.BootMode), SecureBoot: framework.FlagOf(m.SecureBoot),
		Console: framework.TextOf[string](m.Console), Triggers: m.fingerprint(ctx), Hardware: hardware,
		Replaced: replacedOf(ctx, m.Replaced), Cleanings: m.Cleanings.ValueInt64(), Skips: hintsOf(ctx, m.SkipBlockDevices).V, Notes: notes,
	}
}

// foresee changes a plan as the decision forecasts. state is nil for a new host.
func (m *model) foresee(f hosts.Forecast, state *model) {
	if f.Target != "" {
		m.TargetState = types.StringValue(f.Target)
	}
	forecast(&m.ProvisionState, f.State)
	forecast(&m.PowerState, f.Power)
	if f.BootInterface != nil {
		forecast(&m.BootInterface, *f.BootInterface)
	}
	m.setCleanings(f.Cleanings)
	m.Restores = types.Int64Null()
	if state != nil {
		m.Restores = state.Restores
	}
	if f.Restores > 0 {
		m.Restores = types.Int64Value(f.Restores)
	}
	if f.Freed {
		m.InstanceID, m.InstanceName, m.AllocationID = types.StringNull(), types.StringNull(), types.StringNull()
	}
	if f.LastError {
		m.LastError = types.StringUnknown()
	}
	if f.Fault {
		m.Fault = types.StringUnknown()
	}
	if f.KeepsBoot && !m.BootMode.IsNull() && !state.BootMode.IsNull() {
		m.BootMode = state.BootMode
	}
	if f.KeepsBoot && !m.SecureBoot.IsNull() && !state.SecureBoot.IsNull() {
		m.SecureBoot = state.SecureBoot
	}
	if f.KeepsConsole && !state.Console.IsNull() {
		m.Console = state.Console
	}
	if f.KeepsRetired {
		m.Retired, m.RetiredReason = state.Retired, state.RetiredReason
	}
	if f.NoRetireReason {
		m.RetiredReason = types.StringNull()
	}
	switch {
	case f.Pending.Unknown:
		m.PendingChanges = types.SetUnknown(types.StringType)
	case f.Pending.Set:
		m.PendingChanges = m.pendingValue(f.Pending.V)
	}
}

func (m *model) setCleanings(count decide.Value[int64]) {
	m.Cleanings = types.Int64Unknown()
	if !count.Unknown {
		m.Cleanings = types.Int64Value(count.V)
	}
}

// addressAt returns the attribute from which the driver follows.
func (m *model) addressAt() decide.Path {
	switch {
	case !m.BMC.IsNull():
		return decide.At("bmc", "address")
	case !m.PowerControl.IsNull():
		return decide.At("power_control")
	}
	return decide.At("driver")
}

func (b *bmcModel) lacksPassword() bool {
	return b != nil && !b.Username.IsNull() && b.Password.IsNull() && b.PasswordWO.IsNull()
}

func (m *model) fingerprint(ctx context.Context) decide.Value[string] {
	switch {
	case m.InspectTriggers.IsNull():
		return decide.Value[string]{}
	case !framework.FullyKnown(ctx, m.InspectTriggers):
		return decide.Unknown[string]()
	}
	return decide.Known(hosts.Fingerprint(framework.StringMap(m.InspectTriggers)))
}
