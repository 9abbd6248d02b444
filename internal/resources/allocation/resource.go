// Package allocation implements the resource metal_allocation: the reservation of a node.
package allocation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

var (
	_ framework.Managed                   = (*allocation)(nil)
	_ resource.ResourceWithValidateConfig = (*allocation)(nil)
)

const allocationTimeout = 10 * time.Minute

// New returns metal_allocation.
func New() resource.Resource { return newAllocation() }

type allocation struct{ framework.Resource }

func newAllocation() *allocation {
	return &allocation{framework.Resource{Type: "metal_allocation", IsThat: "UUID of the allocation."}}
}

// ValidateConfig checks that the configuration says how to choose the node.
func (a *allocation) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.ResourceClass.IsNull() && m.BackfillNode.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("resource_class"), "Missing setting",
			"Set resource_class to let Ironic choose a node, or backfill_node to adopt a node that is active already into the allocation.")
	}
}

// Create reserves a node.
func (a *allocation) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer a.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limit, diags := plan.Timeouts.Create(ctx, allocationTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	wish := plan.wish(ctx)
	if framework.Show(&resp.Diagnostics, wish.CheckCreation()...); resp.Diagnostics.HasError() {
		return
	}
	request := wish.Request(ironic.NewUUID())
	a.warnLeft(ctx, request.AllocationSpec, &resp.Diagnostics)
	doing := "allocate a node" + plan.purpose()
	made, by, err := allocate.Allocate(ctx, a.Site, &request)
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	if by != nil && allocate.AnnounceBegun(a.Site, made.UUID) {
		framework.WarnTakenOver(&resp.Diagnostics, "allocation "+made.UUID, by)
	}
	planned := plan.LastError
	plan.fromAllocation(made, "")
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	a.NoteSite(ctx, resp.Private, true, &resp.Diagnostics)

	awaited, exists, err := allocate.Reserve(ctx, a.Site, &request, made, limit)
	if !exists { // a creation that has left nothing counts as undone, even if the user has interrupted it
		resp.State.RemoveResource(ctx)
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	if awaited != nil {
		made = awaited
	}
	err = allocate.EndAllocation(ctx, a.Site, made, err)
	if notes.IsSuperseded(err) {
		resp.State.RemoveResource(ctx) // another run has taken it over
	} else if awaited != nil {
		node, nerr := allocate.ReservedNodeOf(ctx, a.Site, made)
		if take(&plan, made, node, nerr, kept); err == nil {
			plan.LastError = planned // Terraform compares it
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		store()
		defer plan.noteUnchanged(ctx, resp.Private, &resp.Diagnostics)
	}
	framework.ReportCreation(&resp.Diagnostics, doing, err)
}

// warnLeft names the allocations that killed runs have left, if the new one has no name by which it could take one of them over.
func (a *allocation) warnLeft(ctx context.Context, spec ironic.AllocationSpec, diags *diag.Diagnostics) {
	left, err := allocate.LeftAllocations(ctx, a.Site, spec)
	if err != nil {
		a.Site.Ironic.Logger().WarnContext(ctx, "could not look for allocations that killed runs have left", "error", err)
	}
	framework.Show(diags, allocate.Left(left)...)
}

// Read refreshes the state. It keeps an allocation whose node is being undeployed and then allocated again. For that it reads the node
// now, because the nodes that the refresh has listed may be older.
func (a *allocation) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	allocate.InState(a.Site, state.ID.ValueString())
	expect.KeepAllocation(a.Site, state.Name.ValueString(), state.ID.ValueString())
	found, err := a.Site.Ironic.AllocationForRefresh(ctx, state.ID.ValueString())
	if a.RefuseHidden(ctx, req.Private, state.label(), func(context.Context) error {
		return err
	}, &resp.Diagnostics) {
		return
	}
	switch missing := err; {
	case api.IsNotFound(missing):
		switch suspended, err := a.Site.IsSuspended(ctx, state.ID.ValueString(), state.NodeID.ValueString()); {
		case err != nil:
			framework.Report(&resp.Diagnostics, "find out whether "+state.label()+" is gone for good", err)
		case suspended || a.keepsLost(ctx, &state, kept, missing, resp):
		default:
			framework.WarnUnseen(&resp.Diagnostics, a.Site.Ironic.Project(), "Allocation "+state.ID.ValueString())
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		framework.Report(&resp.Diagnostics, "read "+state.label(), err)
		return
	}
	if state.isImported() {
		state.importAll(ctx, found)
	} else {
		state.Name = framework.OrNull(found.Name)
		state.Extra = framework.RefreshObject(ctx, state.Extra, found.Extra)
	}
	var node *ironic.Node
	if found.NodeUUID != "" {
		node, err = a.Site.Ironic.NodeForRefresh(ctx, found.NodeUUID)
	}
	take(&state, found, node, err, kept)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	store()
	state.noteUnchanged(ctx, resp.Private, &resp.Diagnostics)
}

// keepsLost reports whether an allocation that does not exist stays in the state: its node does not exist, either, so Ironic has lost both.
// A node that exists says itself that the reservation has ended, or that its record is being restored. missing is why the allocation was
// not found.
func (a *allocation) keepsLost(ctx context.Context, state *model, kept *private, missing error, resp *resource.ReadResponse) bool {
	if !framework.IsSet(state.NodeID) {
		return false
	}
	node, err := a.Site.Ironic.NodeForRefresh(ctx, state.NodeID.ValueString())
	claimed := err == nil && notes.Claimant(node) == state.ID.ValueString()
	if err == nil && (allocate.IsRestoring(node, state.ID.ValueString()) || kept.isOlder(node)) {
		err = missing
	}
	return a.KeepsLost(ctx, resp.Private, lost.Record{
		Kind: kindAllocation, ID: state.ID.ValueString(), Use: "reserved", Claimed: claimed,
		Machine: cmp.Or(state.NodeName.ValueString(), state.NodeID.ValueString()),
	}, lost.Sight{Err: err}, &resp.Diagnostics)
}

const kindAllocation = "metal_allocation"

// Update changes name and extra, and waits for an allocation that an interrupted run has created.
func (a *allocation) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer a.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := plan.Timeouts.Create(ctx, allocationTimeout)
	resp.Diagnostics.Append(diags...)
	id, wish := state.ID.ValueString(), plan.wish(ctx)
	steps := framework.PlannedSteps[allocate.Step](ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if allocate.In(steps, allocate.DoRestore) != nil {
		a.restore(ctx, &plan, &state, limit, resp)
		return
	}
	done, _, err := a.Site.Hold(ctx, id)
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change "+state.label(), err)
		return
	}
	defer done()
	if edit := allocate.In(steps, allocate.DoEdit); edit != nil {
		name, set := edit.Values(wish)
		if err := a.Site.Ironic.UpdateAllocation(ctx, id, name, set, edit.Remove); err != nil {
			framework.ReportUndone(&resp.Diagnostics, "change "+state.label(), err)
			return
		}
	}
	found, err := a.Site.Ironic.Allocation(ctx, id)
	if err == nil {
		request := wish.Request(id)
		request.Continue(found)
		found, _, err = allocate.Reserve(ctx, a.Site, &request, found, limit)
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "allocate a node"+plan.purpose(), err)
		return
	}
	allocate.ForgetAllocationMark(ctx, a.Site, found)
	node, err := allocate.ReservedNodeOf(ctx, a.Site, found)
	if err == nil && node != nil {
		framework.Show(&resp.Diagnostics, wish.Check(state.wish(ctx), found.UUID, node)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	wanted := plan
	take(&plan, found, node, err, kept)
	framework.Keep(&plan.NodeID, wanted.NodeID)
	framework.Keep(&plan.NodeName, wanted.NodeName)
	framework.Keep(&plan.State, wanted.State)
	framework.Keep(&plan.LastError, wanted.LastError)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	store()
	plan.noteUnchanged(ctx, resp.Private, &resp.Diagnostics)
}

// restore makes the allocation anew that Ironic has lost, or leaves that to its deployment.
func (a *allocation) restore(ctx context.Context, plan, state *model, limit time.Duration, resp *resource.UpdateResponse) {
	spec := plan.wish(ctx).Request(state.ID.ValueString()).AllocationSpec
	if err := allocate.Restore(ctx, a.Site, spec, state.NodeID.ValueString(), !a.Restores(), limit); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "restore "+state.label(), err)
		return
	}
	plan.State = state.State
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	a.NoteNewSite(ctx, resp.Private, &resp.Diagnostics)
}

func (a *allocation) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer a.Finish(ctx, &resp.Diagnostics)
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if a.RefuseHidden(ctx, req.Private, state.label(), a.AskAllocation(state.ID.ValueString()), &resp.Diagnostics) {
		return
	}
	if a.Site.Run.HasTakenOver(notes.MarkCreation, state.ID.ValueString()) {
		framework.WarnKept(&resp.Diagnostics, "allocation "+state.ID.ValueString())
		return
	}
	if err := allocate.Release(ctx, a.Site, state.ID.ValueString(), state.NodeID.ValueString(), deploy.EndLeftQuarantine); err != nil {
		framework.ReportUndone(&resp.Diagnostics, fmt.Sprintf("release node %s of allocation %s", state.NodeName.ValueString(),
			state.ID.ValueString()), err)
	}
}

// ImportState finds the allocation by UUID or name.
func (a *allocation) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	found, err := a.Site.Ironic.Allocation(ctx, id)
	if err != nil {
		framework.ReportImport(&resp.Diagnostics, "import allocation "+id, err)
		return
	}
	framework.RecordImport(ctx, resp, found.UUID)
}

// take copies an allocation and its node's name into the model, and notes what plans must know of the node. failed is why the node could
// not be read.
func take(m *model, found *ironic.Allocation, node *ironic.Node, failed error, kept *private) {
	m.fromAllocation(found, "")
	if found.NodeUUID == "" || failed != nil && !api.IsNotFound(failed) { // the note of the last refresh stays
		return
	}
	reserved := allocate.ReservedBy(found.UUID, found.NodeUUID, node)
	if m.Require.IsNull() {
		reserved.Group, reserved.Properties = "", nil // no plan needs them
	}
	m.NodeName = framework.OrNull(reserved.Name)
	kept.see(reserved)
	if node != nil && kept.Reserved.IsZero() {
		kept.Reserved = node.ChangedAt()
	}
}

var _ resource.ResourceWithMoveState = (*allocation)(nil)

// MoveState takes over allocations of terraform-provider-ironic and its fork.
func (a *allocation) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_allocation_v1", "ironic_allocation")}
}
