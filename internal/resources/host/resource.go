// Package host implements the resource metal_host: a node of Ironic and its ports.
package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
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

func (h *host) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_host"
}

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
	if err == nil && plan.TargetState.ValueString() != targetEnroll { // a host that fails later is tainted
		_, err = h.Site.Thawed(ctx, "host "+config.Name.ValueString(), limit)
	}
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
	h.NoteSite(ctx, resp.Private, true, &resp.Diagnostics)
	kept.Managed = config.managedBy(ctx)

	change := &change{config: &config, plan: &plan, takesOver: found != nil, began: began}
	change.begin(ctx, h, machine, hosts.Order{Plan: todo, Limit: limit})
	doing, err := change.work.Do(ctx)
	unmade := false
	if change.work.IsMade {
		unmade, err = hosts.Unmake(ctx, machine, err)
	}
	if unmade {
		doing = ""
	} else {
		err = machine.EndCreation(ctx, notes.MarkCreation, err)
		machine.NoteWork(ctx)
	}
	end := change.ending(err)
	end.Unmade, end.OthersMade = unmade, found != nil && found.By != nil && !found.By.Done.IsZero()
	outcome := hosts.After(end)
	if outcome.Stores == hosts.StoresNone {
		resp.State.RemoveResource(ctx)
		reportTaken(ctx, &resp.Diagnostics, &config, cmp.Or(doing, "enroll node "+config.Name.ValueString()), err)
		return
	}
	change.finish(ctx, h, outcome, kept, &resp.State, &resp.Diagnostics, doing, err)
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
	if todo.Has(hosts.DoRestore, hosts.DoReturn) {
		h.restore(ctx, &config, &plan, &state, kept, limit, resp)
		return
	}
	var m *machine.Machine
	if err == nil {
		m, err = h.machineOf(ctx, req.Private, &state, &config, todo, limit)
	}
	if h.ReportLost(ctx, req.Private, state.lostRecord(), err, &resp.Diagnostics) {
		return
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change host "+state.label(), err)
		return
	}
	change := &change{
		config: &config, plan: &plan, state: &state, before: kept.Managed, began: began, madeAnew: todo.Has(hosts.DoEnroll),
	}
	change.begin(ctx, h, m, hosts.Order{
		Plan: todo, OnMachine: kept.OnMachine, Proof: kept.Proof, Limit: limit, Doubtful: kept.Anew || change.madeAnew,
	})
	doing, err := change.work.Do(ctx)
	kept.Anew = change.work.Doubtful
	kept.Inspected = kept.Inspected && !change.madeAnew // Ironic has no inventory of the machine any more
	switch {
	case change.madeAnew:
		err = change.work.Machine.EndCreation(ctx, notes.MarkCreation, err)
	case err == nil:
		change.work.Machine.ForgetCreation(ctx, notes.MarkCreation)
	}
	change.work.Machine.NoteWork(ctx)
	h.NoteSite(ctx, resp.Private, todo.Costs(decide.Restart), &resp.Diagnostics)
	kept.Plan = nil
	change.finish(ctx, h, hosts.After(change.ending(err)), kept, &resp.State, &resp.Diagnostics, doing, err)
	store()
	h.noteUnchanged(ctx, change.plan, resp.Private, &resp.Diagnostics)
}

// machineOf returns the machine of a host in state, and makes its record anew if that is planned.
func (h *host) machineOf(
	ctx context.Context, private framework.GettablePrivate, state, config *model, todo hosts.Plan, limit time.Duration,
) (*machine.Machine, error) {
	id := state.ID.ValueString()
	node, err := h.Site.Ironic.Node(ctx, id)
	switch anew := todo.Has(hosts.DoEnroll); {
	case anew && api.IsNotFound(err):
		if err := h.CheckSite(ctx, private); err != nil {
			return nil, err
		}
		return hosts.MakeAnew(ctx, h.Site, id, config.hostSettings(ctx, nil).Enrollment(), config.cablingOf(ctx, nil), limit)
	case anew && err == nil:
		return nil, fmt.Errorf("node %s has a record in Ironic again. Nothing was done. Plan again", ironic.NodeLabel(node))
	case err != nil:
		return nil, err
	case notes.IsRestoring(node):
		return nil, hosts.RefuseRestoring(node)
	}
	return h.Site.Record(node), nil
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
	if h.RefuseHidden(ctx, req.Private, "node "+state.label(), h.AskNode(state.ID.ValueString()), &resp.Diagnostics) {
		return
	}
	if state.OnDestroy.ValueString() == destroyForget {
		h.Site.ForgetHost(ctx, state.ID.ValueString())
		if h.Turns(ctx, state.rollout()).Group != "" {
			turns.Forget(ctx, h.Site, state.ID.ValueString(), true)
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
		if !framework.LoadPrivate[private](ctx, req.Private).Superseded {
			framework.WarnKept(&resp.Diagnostics, "node "+state.label())
			return
		}
		state.OnDestroy = types.StringValue(destroyForget) // of what another resource has in state now
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		framework.ReportKept(&resp.Diagnostics, "host "+state.label(), "a host of the same machine")
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
	state        *model    // the prior state; nil for a new host
	before       managed   // what was managed until now
	takesOver    bool      // a new host gets a node that there is
	madeAnew     bool      // a host gets a new node, because Ironic has lost the record of its own
	began        time.Time // of the apply

	work *hosts.Work
}

// begin makes the work on a node. order has what the models do not say.
func (c *change) begin(ctx context.Context, h *host, m *machine.Machine, order hosts.Order) {
	order.Wish = c.plan.wish(ctx, c.config, c.state)
	order.Settings, order.Cabling = c.settings(ctx, order), c.config.cablingOf(ctx, c.before)
	if order.Plan.Has(hosts.DoReplace) { // the new machine has nothing of it
		order.OnMachine = hosts.Hardware{}
	}
	order.Boot, order.OffMode = c.config.bootSettings(), machine.OffMode(c.config.PowerOffMode.ValueString())
	_, order.NoRamdisk = c.config.hardwareChanges()
	order.Rollout = h.Turns(ctx, c.config.rollout())
	order.IsMade = c.state == nil && !c.takesOver || c.madeAnew
	order.GoesOn = c.plan.OnFailure.ValueString() == onFailureWarn
	order.EndTemporary = h.EndTemporary
	if c.state != nil && !c.madeAnew {
		order.Was, order.Assumed = c.state.node(), c.state.assumed()
		order.Intent = c.plan.intent(ctx, c.config, c.state, m.Node().DriverInfo, c.before)
	}
	c.work = hosts.NewWork(m, order)
}

// settings returns what the apply makes of the settings of the node.
func (c *change) settings(ctx context.Context, order hosts.Order) *hosts.Settings {
	todo := order.Plan
	want := c.config.hostSettings(ctx, c.before)
	switch {
	case c.madeAnew: // the request that has made the node has it all
	case c.state != nil:
		want.Written, want.Resends = c.state.settings(ctx), c.plan.secretsVersion(ctx) != c.state.secretsVersion(ctx)
	case c.takesOver: // the node has nothing of the configuration yet
		want.Written, want.Resends = ironic.Settings{}, true
	}
	want.Expects = order.Wish.Expected.Set
	want.IsNew = c.state == nil || c.madeAnew
	want.KeepsRetired, want.DropsReason = c.plan.Retired.ValueBool() && !c.config.Retired.ValueBool(), c.plan.RetiredReason.IsNull()
	want.Forgets = c.state != nil && c.before == nil || c.config.InspectTriggers.IsNull() // after an import, those of another configuration
	switch {
	case !todo.Has(hosts.DoInspectAgain):
	case todo.Has(hosts.DoReplace):
		want.Inspects = order.Wish.Replaced.V.Fingerprint()
	default:
		want.Inspects = hosts.Fingerprint(framework.StringMap(c.plan.InspectTriggers))
	}
	return want
}

func (c *change) ending(failed error) hosts.Ending {
	end := c.work.Ending(failed)
	end.Cleanings = framework.NumberOf(c.plan.Cleanings)
	if c.state != nil {
		end.CleaningsBefore = c.state.Cleanings.ValueInt64()
	}
	return end
}

// finish stores what the work has left, in the state and in private state, and reports it. failed is the error of what it was doing.
func (c *change) finish(
	ctx context.Context, h *host, outcome hosts.Outcome, kept *private, state *tfsdk.State, diags *diag.Diagnostics,
	doing string, failed error,
) {
	c.keep(ctx, outcome.Stores, kept)
	whole := context.WithoutCancel(ctx) // the state must be complete after an interruption too
	framework.Show(diags, c.work.Look(whole, failed, !c.plan.PortGroups.IsNull())...)
	if c.state == nil && outcome.Says == hosts.SaysFailed && !failure.IsInterrupted(failed) { // Terraform compares nothing then
		c.plan.LastError = types.StringUnknown()
	}
	c.record(whole, outcome)
	diags.Append(state.Set(whole, c.plan)...)
	c.note(ctx, h, kept, diags)
	kept.Replacing = c.work.Replacing(failed)
	if outcome.Says == hosts.SaysUndone {
		reportTaken(ctx, diags, c.config, doing, failed)
		return
	}
	notices, err := c.work.Result(outcome.Says, doing, failed)
	framework.Show(diags, notices...)
	if c.state == nil {
		framework.ReportCreation(diags, doing, err)
	} else {
		framework.Report(diags, doing, err)
	}
}

// keep keeps what Ironic has of the configuration: it makes the planned state the one to store, and notes what that manages.
func (c *change) keep(ctx context.Context, stores hosts.Stored, kept *private) {
	if stores == hosts.StoresPrior {
		*c.plan = *c.state
		c.plan.ProvisionState = types.StringUnknown()
		return
	}
	c.plan.PendingChanges = c.plan.pendingValue(c.work.Open)
	kept.applied(c.work.Applied())
	kept.Managed = c.config.managedBy(ctx)
	if stores == hosts.StoresBoth {
		kept.Managed = kept.Managed.and(c.before)
		c.plan.addParts(ctx, c.state)
	}
}

// record makes the host as Ironic has it the state to store, with the known planned values unchanged.
func (c *change) record(ctx context.Context, outcome hosts.Outcome) {
	if outcome.KeepsBoot {
		c.plan.BootMode, c.plan.SecureBoot = c.state.BootMode, c.state.SecureBoot
	}
	if outcome.KeepsConsole {
		c.plan.Console = c.state.Console
	}
	planned := *c.plan
	c.plan.fromNode(ctx, sight{node: c.work.Node(), Cables: c.work.Cables}, false)
	c.plan.keepPlanned(ctx, &planned)
	c.plan.setCleanings(outcome.Cleanings)
}

// note notes in private state what the next plan must know of the machine.
func (c *change) note(ctx context.Context, h *host, kept *private, diags *diag.Diagnostics) {
	node, since := c.work.Node(), c.began
	kept.Inspected = kept.Inspected || c.work.Inspected
	if c.takesOver { // it may have an inventory though Ironic's own inspection has not run
		h.seeNew(ctx, node, kept, diags)
	}
	ctx = context.WithoutCancel(ctx)
	kept.Unverified = c.work.IsUnverified()
	kept.see(node)
	kept.Updated = lost.Seen(kept.Updated, node)
	kept.compare(c.plan.drift(h.HardwareDrift).V, func(before *hosts.HardwareComparison) (*hosts.HardwareComparison, []decide.Notice) {
		return c.work.Compare(ctx, before)
	}, diags)
	kept.Proof = c.work.Proof
	h.prove(ctx, c.plan, node, kept, diags)
	kept.Fitness = hosts.SeeFitness(ctx, h.Site, node, c.plan.qualification(ctx), kept.Fitness)
	if c.state != nil && maps.Equal(c.plan.ends(ctx), c.state.ends(ctx)) {
		since = time.Time{} // the cables are expected to be as before
	}
	h.hear(ctx, c.plan, node, since, kept, diags)
}

// recordNode completes a planned state with the values of the created node, so that all values are known.
func (m *model) recordNode(ctx context.Context, node *ironic.Node) {
	wanted := *m
	m.fromNode(ctx, sight{node: node}, false)
	m.keepPlanned(ctx, &wanted)
}
