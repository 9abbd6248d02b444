// Package host implements the resource metal_host: a node of Ironic and its ports.
package host

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/commission"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
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
	var plan, config model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Create(ctx, hostTimeout)
	resp.Diagnostics.Append(diags...)
	todo, err := readPlan(ctx, framework.Planned(ctx))
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "enroll node "+config.Name.ValueString(), err)
		return
	}
	machine, found, err := enroll.EnrollHost(ctx, h.Site, config.hostSettings(ctx, nil).Enrollment(), config.cablingOf(ctx, nil), limit)
	if err != nil {
		reportTaken(ctx, &resp.Diagnostics, &config, "enroll node "+config.Name.ValueString(), err)
		return
	}
	if found != nil && h.announces(&resp.Diagnostics, plan.describe(), found) {
		framework.Show(&resp.Diagnostics, enroll.TakeOver(plan.wish(ctx, &config, nil), ironic.NodeLabel(found.Node)))
	}
	recorded := plan
	recorded.recordNode(ctx, machine.Node())
	plan.ID = recorded.ID // other unknown values stay unknown until the node is prepared
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &recorded)...)
	resp.Diagnostics.Append(config.managedBy(ctx).write(ctx, resp.Private)...)

	change := &change{config: &config, plan: &plan, takesOver: found != nil}
	change.begin(ctx, h, machine, commission.Order{Plan: todo, Limit: limit})
	doing, err := change.work.Do(ctx)
	gone := false
	if change.work.IsMade {
		gone, err = enroll.Unmake(ctx, machine, err)
	}
	if gone {
		resp.State.RemoveResource(ctx)
		reportTaken(ctx, &resp.Diagnostics, &config, "enroll node "+config.Name.ValueString(), err)
		return
	}
	err = machine.EndCreation(ctx, marks.MarkCreation, err)
	othersMade := found != nil && found.By != nil && !found.By.Done.IsZero() && err != nil && !failure.IsInterrupted(err) && !change.work.Tolerates(err)
	if othersMade || marks.IsSuperseded(err) { // as a tainted resource, it would be deleted
		resp.State.RemoveResource(ctx)
		framework.ReportUndone(&resp.Diagnostics, cmp.Or(doing, "enroll node "+config.Name.ValueString()), err)
		return
	}
	plan.PendingChanges = partsValue(change.work.Open)
	resp.Diagnostics.Append(change.writeHardware(ctx, resp.Private)...)
	change.record(ctx, err, &resp.State, &resp.Diagnostics)
	if found != nil && !change.work.Inspected { // it may have an inventory though Ironic's own inspection has not run
		h.noteInspection(ctx, change.work.Node(), resp.Private, resp.Private, &resp.Diagnostics)
	} else {
		change.noteInspected(ctx, resp.Private, &resp.Diagnostics)
	}
	change.report(&resp.Diagnostics, doing, err)
	h.noteUnchanged(ctx, change.plan, resp.Private, &resp.Diagnostics)
}

// Read refreshes the state, and removes it if the node is gone.
func (h *host) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	found, err := h.look(ctx, &state)
	if h.RefuseHidden(ctx, req.Private, "node "+state.ID.ValueString(), func(context.Context) error { return err }, &resp.Diagnostics) {
		return
	}
	if ironic.IsNotFound(err) {
		framework.WarnUnseen(&resp.Diagnostics, h.Site.Ironic.Project(), "Host "+state.label())
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		framework.Report(&resp.Diagnostics, "read host "+state.label(), err)
		return
	}
	node, imported := found.node, state.isImported()
	state.refresh(ctx, found)
	if state.lostSecret(node, readManaged(ctx, req.Private)) {
		state.DriverInfoWOVersion = types.Int64Null()
	}
	if imported {
		h.noteInspection(ctx, node, req.Private, resp.Private, &resp.Diagnostics)
	} else if !wasInspected(ctx, req.Private) {
		noteInspected(ctx, node, resp.Private, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(notePending(ctx, node, resp.Private)...)
	resp.Diagnostics.Append(setText(ctx, resp.Private, quarantineKey, quarantineOf(node))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	h.noteUnchanged(ctx, &state, resp.Private, &resp.Diagnostics)
}

// Update changes the node in place as planned.
func (h *host) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer h.Finish(ctx, &resp.Diagnostics)
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
	defer enroll.Moved(h.Site, state.ID.ValueString())
	todo, err := readPlan(ctx, req.Private)
	var node *ironic.Node
	if err == nil {
		node, err = h.Site.Ironic.Node(ctx, state.ID.ValueString())
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "update host "+state.label(), err)
		return
	}
	change := &change{config: &config, plan: &plan, state: &state, before: readManaged(ctx, req.Private)}
	change.begin(ctx, h, h.Site.Record(node), commission.Order{Plan: todo, OnMachine: readNotes(ctx, req.Private).OnMachine, Limit: limit})
	doing, err := change.work.Do(ctx)
	if err == nil {
		change.work.Machine.ForgetCreation(ctx, marks.MarkCreation)
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, planKey, nil)...)
	if change.work.Complete || change.work.Patched {
		plan.PendingChanges = partsValue(change.work.Open)
		resp.Diagnostics.Append(change.writeHardware(ctx, resp.Private)...)
	}
	switch {
	case change.work.Complete:
		resp.Diagnostics.Append(config.managedBy(ctx).write(ctx, resp.Private)...)
	case change.work.Patched: // Ironic may still have what was to be removed: it stays managed, and in state
		resp.Diagnostics.Append(config.managedBy(ctx).and(change.before).write(ctx, resp.Private)...)
		plan.addParts(ctx, &state)
	default: // Ironic has nothing of the new configuration
		plan = state
		plan.ProvisionState = types.StringUnknown()
	}
	change.record(ctx, err, &resp.State, &resp.Diagnostics)
	change.noteInspected(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(change.noteUnverified(ctx, resp.Private)...)
	resp.Diagnostics.Append(notePending(ctx, change.work.Node(), resp.Private)...)
	resp.Diagnostics.Append(setText(ctx, resp.Private, quarantineKey, quarantineOf(change.work.Node()))...)
	if err != nil && !change.work.Complete {
		reportTaken(ctx, &resp.Diagnostics, &config, doing, err)
		return
	}
	change.report(&resp.Diagnostics, doing, err)
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
		return
	}
	foreign, err := h.mayBeForeign(ctx, state.ID.ValueString(), readManaged(ctx, req.Private))
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "delete host "+state.label(), err)
		return
	}
	if foreign {
		framework.Show(&resp.Diagnostics, enroll.KeepForeign(state.label()))
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, hostDeleteTimeout)
	resp.Diagnostics.Append(diags...)
	gone, ended := false, enroll.Deleting(h.Site, state.ID.ValueString())
	defer func() { ended(gone) }()
	if h.Site.Run.HasTakenOver(marks.MarkCreation, state.ID.ValueString()) {
		framework.WarnKept(&resp.Diagnostics, "node "+state.label())
		return
	}
	if h.HasOneView() {
		err = h.Pool.Vacate(ctx, state.ID.ValueString(), limit)
	}
	if err == nil || ironic.IsNotFound(err) {
		err = h.Site.Withdraw(ctx, state.ID.ValueString(), limit)
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "delete host "+state.label(), err)
	}
	gone = err == nil
}

// mayBeForeign reports whether a node was discovered and no configuration was ever applied to it.
func (h *host) mayBeForeign(ctx context.Context, id string, ours managed) (bool, error) {
	if ours != nil {
		return false, nil
	}
	return enroll.MayBeForeign(ctx, h.Site, id)
}

// ImportState finds the node by UUID, name, MAC address or "bmc:ADDRESS".
func (h *host) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	node, err := h.Site.Ironic.FindNode(ctx, id)
	if err != nil {
		framework.Report(&resp.Diagnostics, "import host "+id, err)
		return
	}
	framework.RecordImport(ctx, resp, node.UUID)
}

// recordNode completes a planned state with the values of the created node, so that all values are known.
func (m *model) recordNode(ctx context.Context, node *ironic.Node) {
	wanted := *m
	m.fromNode(ctx, sight{node: node}, false)
	m.keepPlanned(ctx, &wanted)
}
