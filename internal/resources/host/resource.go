// Package host implements the resource metal_host: a node of Ironic and its ports.
package host

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

var (
	_ resource.ResourceWithConfigure      = (*host)(nil)
	_ resource.ResourceWithIdentity       = (*host)(nil)
	_ resource.ResourceWithImportState    = (*host)(nil)
	_ resource.ResourceWithModifyPlan     = (*host)(nil)
	_ resource.ResourceWithValidateConfig = (*host)(nil)
	_ framework.Refresher                 = (*host)(nil)
)

// Default time-outs of a host, for each step of a walk.
const (
	hostTimeout       = 60 * time.Minute
	hostDeleteTimeout = 30 * time.Minute
)

// New returns metal_host.
func New() resource.Resource { return &host{} }

type host struct{ framework.WithClient }

// Metadata names the resource.
func (h *host) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_host"
}

// IdentitySchema describes its identity.
func (h *host) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = framework.IdentitySchema("UUID of the node.")
}

// Create enrolls the node and prepares it up to target_state.
func (h *host) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer h.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan, config model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Create(ctx, hostTimeout)
	resp.Diagnostics.Append(diags...)
	began := h.Site.Ironic.ServerNow()
	todo, err := framework.LoadPrivate[private](ctx, framework.Planned(ctx)).planned()
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "enroll node "+config.Name.ValueString(), err)
		return
	}
	machine, found, err := hosts.Claim(ctx, h.Site, config.hostSettings(ctx, nil).Enrollment(), config.cablingOf(ctx, nil), limit)
	if err != nil {
		reportTaken(ctx, &resp.Diagnostics, &config, "enroll node "+config.Name.ValueString(), err)
		return
	}
	if found != nil && h.announces(&resp.Diagnostics, plan.describe(), found) {
		framework.Show(&resp.Diagnostics, hosts.TakeOver(plan.wish(ctx, &config, nil), ironic.NodeLabel(found.Node)))
	}
	recorded := plan
	recorded.recordNode(ctx, machine.Node())
	plan.ID = recorded.ID // other unknown values stay unknown until the node is prepared
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &recorded)...)
	kept.Managed = config.managedBy(ctx)

	change := &change{config: &config, plan: &plan, takesOver: found != nil}
	change.begin(ctx, h, machine, hosts.Order{Plan: todo, Limit: limit})
	doing, err := change.work.Do(ctx)
	gone := false
	if change.work.IsMade {
		gone, err = hosts.Unmake(ctx, machine, err)
	}
	if gone {
		resp.State.RemoveResource(ctx)
		reportTaken(ctx, &resp.Diagnostics, &config, "enroll node "+config.Name.ValueString(), err)
		return
	}
	err = machine.EndCreation(ctx, notes.MarkCreation, err)
	machine.NoteWork(ctx)
	othersMade := found != nil && found.By != nil && !found.By.Done.IsZero() && err != nil && !failure.IsInterrupted(err) && !change.work.Tolerates(err)
	if othersMade || notes.IsSuperseded(err) { // as a tainted resource, it would be deleted
		resp.State.RemoveResource(ctx)
		framework.ReportUndone(&resp.Diagnostics, cmp.Or(doing, "enroll node "+config.Name.ValueString()), err)
		return
	}
	plan.PendingChanges = partsValue(change.work.Open)
	kept.applied(change.work.Applied())
	change.record(ctx, err, &resp.State, &resp.Diagnostics)
	kept.Inspected = change.work.Inspected
	if found != nil { // it may have an inventory though Ironic's own inspection has not run
		h.seeNew(ctx, change.work.Node(), kept, &resp.Diagnostics)
	}
	kept.see(change.work.Node())
	change.compareHardware(context.WithoutCancel(ctx), h, kept, &resp.Diagnostics)
	h.hear(context.WithoutCancel(ctx), change.plan, change.work.Node(), began, kept, &resp.Diagnostics)
	change.report(&resp.Diagnostics, doing, err)
	store()
	h.noteUnchanged(ctx, change.plan, resp.Private, &resp.Diagnostics)
}

// Update changes the node in place as planned.
func (h *host) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer h.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan, config, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	limit, diags := plan.Timeouts.Update(ctx, hostTimeout)
	resp.Diagnostics.Append(diags...)
	began := h.Site.Ironic.ServerNow()
	defer hosts.Moved(h.Site, state.ID.ValueString())
	todo, err := kept.planned()
	var node *ironic.Node
	if err == nil {
		node, err = h.Site.Ironic.Node(ctx, state.ID.ValueString())
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change host "+state.label(), err)
		return
	}
	change := &change{config: &config, plan: &plan, state: &state, before: kept.Managed}
	change.begin(ctx, h, h.Site.Record(node), hosts.Order{Plan: todo, OnMachine: kept.OnMachine, Limit: limit})
	doing, err := change.work.Do(ctx)
	if err == nil {
		change.work.Machine.ForgetCreation(ctx, notes.MarkCreation)
	}
	change.work.Machine.NoteWork(ctx)
	kept.Plan = nil
	if change.work.Complete || change.work.Patched {
		plan.PendingChanges = partsValue(change.work.Open)
		kept.applied(change.work.Applied())
	}
	switch {
	case change.work.Complete:
		kept.Managed = config.managedBy(ctx)
	case change.work.Patched: // Ironic may still have what was to be removed: it stays managed, and in state
		kept.Managed = config.managedBy(ctx).and(change.before)
		plan.addParts(ctx, &state)
	default: // Ironic has nothing of the new configuration
		plan = state
		plan.ProvisionState = types.StringUnknown()
	}
	change.record(ctx, err, &resp.State, &resp.Diagnostics)
	kept.Inspected = kept.Inspected || change.work.Inspected
	kept.Unverified = change.work.IsUnverified()
	kept.see(change.work.Node())
	change.compareHardware(context.WithoutCancel(ctx), h, kept, &resp.Diagnostics)
	if maps.Equal(plan.ends(ctx), state.ends(ctx)) {
		began = time.Time{}
	}
	h.hear(context.WithoutCancel(ctx), change.plan, change.work.Node(), began, kept, &resp.Diagnostics)
	if err != nil && !change.work.Complete {
		reportTaken(ctx, &resp.Diagnostics, &config, doing, err)
		return
	}
	change.report(&resp.Diagnostics, doing, err)
	store()
	h.noteUnchanged(ctx, change.plan, resp.Private, &resp.Diagnostics)
}

// Delete removes the node from Ironic, unless the node is deployed, or forgets it, if on_destroy says so. It also forgets a
// discovered node that was imported and never changed.
func (h *host) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer h.Finish(ctx, &resp.Diagnostics)
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if h.RefuseHidden(ctx, req.Private, "node "+state.ID.ValueString(), h.AskNode(state.ID.ValueString()), &resp.Diagnostics) {
		return
	}
	if state.OnDestroy.ValueString() == destroyForget {
		h.Site.ForgetHost(ctx, state.ID.ValueString())
		if h.Turns(ctx, state.rollout()).Group != "" {
			turns.ForgetService(ctx, h.Site, state.ID.ValueString())
		}
		return
	}
	foreign, err := h.mayBeForeign(ctx, state.ID.ValueString(), framework.LoadPrivate[private](ctx, req.Private).Managed)
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "delete host "+state.label(), err)
		return
	}
	if foreign {
		framework.Show(&resp.Diagnostics, hosts.KeepForeign(state.label()))
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, hostDeleteTimeout)
	resp.Diagnostics.Append(diags...)
	gone, ended := false, hosts.Deleting(h.Site, state.ID.ValueString())
	defer func() { ended(gone) }()
	if h.Site.Run.HasTakenOver(notes.MarkCreation, state.ID.ValueString()) {
		framework.WarnKept(&resp.Diagnostics, "node "+state.label())
		return
	}
	if h.HasOneView() {
		err = h.Pool.Vacate(ctx, state.ID.ValueString(), limit)
	}
	if err == nil || api.IsNotFound(err) {
		err = h.Site.Withdraw(ctx, state.ID.ValueString(), limit)
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "delete host "+state.label(), err)
	}
	gone = err == nil
}

// Values of on_failure.
const (
	onFailureError = "error"
	onFailureWarn  = "warn"
)

// change is an apply of a host: its models, and the work in Ironic.
type change struct {
	config, plan *model
	state        *model  // the prior state; nil for a new host
	before       managed // what was managed until now
	takesOver    bool    // a new host gets a node that there is

	work *hosts.Work
}

// begin makes the work on a node. order has what the models do not say.
func (c *change) begin(ctx context.Context, h *host, m *machine.Machine, order hosts.Order) {
	order.Wish = c.plan.wish(ctx, c.config, c.state)
	order.Settings, order.Cabling = c.settings(ctx, order.Plan), c.config.cablingOf(ctx, c.before)
	order.Boot, order.OffMode = c.config.bootSettings(), machine.OffMode(c.config.PowerOffMode.ValueString())
	_, order.NoRamdisk = c.config.hardwareChanges()
	order.Rollout = h.Turns(ctx, c.config.rollout())
	order.IsMade = c.state == nil && !c.takesOver
	order.GoesOn = c.plan.OnFailure.ValueString() == onFailureWarn
	order.EndTemporary = h.EndTemporary
	if c.state != nil {
		order.Was = c.state.node()
		order.Intent = c.plan.intent(ctx, c.config, c.state, m.Node().DriverInfo, c.before)
	}
	c.work = hosts.NewWork(m, order)
}

// settings returns what the apply makes of the settings of the node.
func (c *change) settings(ctx context.Context, todo hosts.Plan) *hosts.Settings {
	want := c.config.hostSettings(ctx, c.before)
	switch {
	case c.state != nil:
		want.Written, want.Resends = c.state.settings(ctx), c.plan.secretsVersion(ctx) != c.state.secretsVersion(ctx)
	case c.takesOver: // the node has nothing of the configuration yet
		want.Written, want.Resends = ironic.Settings{}, true
	}
	want.IsNew = c.state == nil
	want.KeepsRetired, want.DropsReason = c.plan.Retired.ValueBool() && !c.config.Retired.ValueBool(), c.plan.RetiredReason.IsNull()
	want.Forgets = c.state != nil && c.before == nil || c.config.InspectTriggers.IsNull() // after an import, those of another configuration
	if todo.Has(hosts.DoInspectAgain) {
		want.Inspects = hosts.Fingerprint(framework.StringMap(c.plan.InspectTriggers))
	}
	return want
}

// record writes the host into state, with the known planned values unchanged.
func (c *change) record(ctx context.Context, failed error, state *tfsdk.State, diags *diag.Diagnostics) {
	ctx = context.WithoutCancel(ctx) // the state must be complete after an interruption too
	framework.Show(diags, c.work.Look(ctx, failed, !c.plan.PortGroups.IsNull())...)
	if c.work.KeepsBoot {
		c.plan.BootMode, c.plan.SecureBoot = c.state.BootMode, c.state.SecureBoot
	}
	if c.work.KeepsConsole && c.state != nil && !c.work.Tolerates(failed) {
		c.plan.Console = c.state.Console
	}
	planned := *c.plan
	c.plan.fromNode(ctx, sight{node: c.work.Node(), Cables: c.work.Cables}, false)
	c.plan.keepPlanned(ctx, &planned)
	c.plan.Cleanings = c.cleanings(planned.Cleanings, failed)
	diags.Append(state.Set(ctx, c.plan)...)
}

// cleanings returns the count after an apply: the planned one, or that of the prior state if the apply fails, since the next plan counts
// the repeat. One that could not be planned was about to rise.
func (c *change) cleanings(planned types.Int64, failed error) types.Int64 {
	switch {
	case c.state == nil:
		return planned
	case failed != nil && !api.IsInterrupted(failed) && !c.work.Tolerates(failed):
		return c.state.Cleanings
	case planned.IsUnknown():
		return types.Int64Value(c.state.Cleanings.ValueInt64() + 1)
	}
	return planned
}

// report adds the result of the work to the diagnostics.
func (c *change) report(diags *diag.Diagnostics, doing string, failed error) {
	notices, err := c.work.Result(doing, failed)
	framework.Show(diags, notices...)
	if c.state == nil {
		framework.ReportCreation(diags, doing, err)
	} else {
		framework.Report(diags, doing, err)
	}
}

// recordNode completes a planned state with the values of the created node, so that all values are known.
func (m *model) recordNode(ctx context.Context, node *ironic.Node) {
	wanted := *m
	m.fromNode(ctx, sight{node: node}, false)
	m.keepPlanned(ctx, &wanted)
}
