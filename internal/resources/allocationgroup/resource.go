// Package allocationgroup implements the resource metal_allocation_group: several allocations that get nodes together, or not at all.
package allocationgroup

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

var _ framework.Managed = (*group)(nil)

const (
	reserveTimeout = 10 * time.Minute
	releaseTimeout = 2 * time.Hour
)

// New returns metal_allocation_group.
func New() resource.Resource { return newGroup() }

type group struct{ framework.Resource }

func newGroup() *group {
	return &group{framework.Resource{
		Type: "metal_allocation_group", IsThat: "UUID of the allocation that the first member had when the group was created.",
	}}
}

// Create reserves a node for each member, or none.
func (r *group) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limit, diags := plan.Timeouts.Create(ctx, reserveTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	wanted, byKey := plan.wish(ctx).Group(plan.Name.ValueString(), nil, int(plan.Size.ValueInt64()))
	wanted.EndQuarantine = deploy.EndLeftQuarantine
	err := r.reserve(ctx, &plan, wanted, limit, &resp.Diagnostics)
	left := slices.IndexFunc(wanted.Members, func(m *allocate.GroupMember) bool { return m.ID != "" })
	if err != nil && (left < 0 || notes.IsSuperseded(err)) {
		resp.State.RemoveResource(ctx)
		return
	}
	plan.ID = types.StringValue(wanted.Members[left].ID) // of the first member, unless only others could not be released
	plan.take(byKey)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	plan.noteUnchanged(ctx, resp.Private, &resp.Diagnostics)
}

// reserve reserves nodes for the members that have none, and reports and returns its error.
func (r *group) reserve(ctx context.Context, plan *model, wanted *allocate.Group, limit time.Duration, diags *diag.Diagnostics) error {
	by, err := allocate.ReserveGroup(ctx, r.Site, wanted, limit)
	doing := "reserve nodes for the " + plan.label(ctx)
	switch {
	case api.IsInterrupted(err):
		diags.AddError("Interrupted: "+doing, "The run was interrupted before all members had a node. It has released what it had "+
			"reserved. Apply again.")
	case err != nil:
		framework.ReportUndone(diags, doing, err)
	case by != nil && allocate.AnnounceBegun(r.Site, wanted.Name):
		framework.WarnTakenOver(diags, "members of the "+plan.label(ctx), by)
	}
	return err
}

func (r *group) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	found, byKey := state.group(ctx)
	exists, err := allocate.RefreshGroup(ctx, r.Site, found)
	switch {
	case err != nil:
		framework.Report(&resp.Diagnostics, "read the "+state.label(ctx), err)
		return
	case r.keepsLost(ctx, &state, byKey, resp):
		return
	case !exists:
		if !r.isHidden(ctx, &state, req.Private, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	if err := r.show(ctx, &state, found, byKey); err != nil {
		framework.Report(&resp.Diagnostics, "read the "+state.label(ctx), err)
		return
	}
	tellDeployments(r.Site, state.label(ctx), state.entries(ctx), nil)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	state.noteUnchanged(ctx, resp.Private, &resp.Diagnostics)
}

// show sets what Ironic shows of a group whose members were refreshed.
func (r *group) show(ctx context.Context, m *model, found *allocate.Group, byKey map[string]*allocate.GroupMember) error {
	if m.Name = nameOf(found.Members); !m.Name.IsNull() {
		found.FormerName, found.Name = found.Name, m.Name.ValueString() // a killed run may have renamed the group and let it grow
	}
	left, err := allocate.FindLeftovers(ctx, r.Site, found)
	if err != nil {
		return err
	}
	m.take(byKey)
	m.Leftovers = framework.SetValue(left)
	return nil
}

// keepsLost reports whether a group stays in the state as it is, because members have lost their allocations together with their nodes.
func (r *group) keepsLost(ctx context.Context, state *model, now map[string]*allocate.GroupMember, resp *resource.ReadResponse) bool {
	var machines []string
	var missing error
	claimed := true
	for key, was := range state.entries(ctx) {
		if m := now[key]; m != nil && m.ID != "" || !was.NodeID.Set {
			continue
		}
		node, err := r.Site.Ironic.NodeForRefresh(ctx, was.NodeID.V)
		if err == nil && allocate.IsRestoring(node, was.ID.V) {
			_, err = r.Site.Ironic.AllocationForRefresh(ctx, was.ID.V)
		}
		if api.IsNotFound(err) {
			claimed = claimed && node != nil && notes.Claimant(node) == was.ID.V
			machines, missing = append(machines, cmp.Or(was.NodeName.V, was.NodeID.V)), err
		}
	}
	slices.Sort(machines)
	return r.KeepsLost(ctx, resp.Private, lost.Record{
		Kind: kindGroup, ID: state.ID.ValueString(), Use: "reserved", Claimed: claimed, Machine: strings.Join(machines, ", "),
	}, lost.Sight{Err: missing}, &resp.Diagnostics)
}

const kindGroup = "metal_allocation_group"

// isHidden adds an error if this user may only lack the rights to see the group: see RefuseHidden.
func (r *group) isHidden(ctx context.Context, state *model, private framework.GettablePrivate, diags *diag.Diagnostics) bool {
	return r.RefuseHidden(ctx, private, state.label(ctx), r.AskAllocation(state.ID.ValueString()), diags)
}

// nameOf returns the name of a group that its members have; null if they have different ones: another client or a killed run has renamed
// some of them.
func nameOf(members []*allocate.GroupMember) types.String {
	name := types.StringNull()
	for i, m := range members {
		of := strings.TrimSuffix(m.Name, allocate.MemberName("", i))
		switch {
		case m.ID == "":
		case name.IsNull():
			name = types.StringValue(of)
		case name.ValueString() != of:
			return types.StringNull()
		}
	}
	return name
}

// Update executes the steps of the plan: it renames, shrinks and grows the group, and reserves nodes for members that have lost theirs.
func (r *group) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan, now model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &now)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: now.ID})...)
	if r.isHidden(ctx, &now, req.Private, &resp.Diagnostics) { // a member that is not found counts as released
		return
	}
	steps := framework.PlannedSteps[allocate.Step](ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if allocate.In(steps, allocate.DoRestore) != nil {
		r.restore(ctx, &plan, &now, resp)
		return
	}
	byKey := r.execute(ctx, steps, &plan, &now, resp)
	if resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &now)...) // members that could not be released are found again by their names
		return
	}
	planned := plan.entries(ctx)
	plan.take(byKey)
	plan.setEntries(allocate.AsPlanned(planned, plan.entries(ctx)))
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	kept.Imported = false
	store()
	plan.noteUnchanged(ctx, resp.Private, &resp.Diagnostics)
}

// restore makes the allocations anew that Ironic has lost, or leaves that to their deployments.
func (r *group) restore(ctx context.Context, plan, now *model, resp *resource.UpdateResponse) {
	limit, found := plan.Timeouts.Create(ctx, reserveTimeout)
	resp.Diagnostics.Append(found...)
	before := now.entries(ctx)
	lostOnes, _ := now.wish(ctx).Group(allocate.KeyPrefix(before, now.Name.ValueString()), before, len(before))
	if err := allocate.RestoreGroup(ctx, r.Site, lostOnes, !r.Restores(), limit); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "restore the "+now.label(ctx), err)
		return
	}
	plan.Leftovers = now.Leftovers
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	r.NoteNewSite(ctx, resp.Private, &resp.Diagnostics)
}

// execute executes the steps of a plan, and returns the members afterwards. now is the state meanwhile.
func (r *group) execute(ctx context.Context, steps []allocate.Step, plan, now *model,
	resp *resource.UpdateResponse,
) (byKey map[string]*allocate.GroupMember) {
	diags := &resp.Diagnostics
	limit, found := plan.Timeouts.Create(ctx, reserveTimeout)
	diags.Append(found...)
	before, formerName, wish := now.entries(ctx), now.Name.ValueString(), plan.wish(ctx)
	prefix := allocate.KeyPrefix(before, formerName)
	r.checkMoves(ctx, steps, plan, now, diags)
	if allocate.In(steps, allocate.DoEdit) != nil && !diags.HasError() {
		renamed, _ := wish.Group(prefix, before, len(before))
		if err := allocate.RenameMembers(ctx, r.Site, renamed.Members); err != nil {
			framework.ReportUndone(diags, "rename the "+now.label(ctx), err)
			return nil
		}
		now.Name = plan.Name
		diags.Append(resp.State.Set(ctx, now)...)
	}
	if release := allocate.In(steps, allocate.DoRelease); release != nil && !diags.HasError() {
		r.release(ctx, release.Members, plan, now, diags)
	}
	if diags.HasError() {
		return nil
	}
	wanted, byKey := wish.Group(prefix, now.entries(ctx), int(plan.Size.ValueInt64()))
	wanted.EndQuarantine = deploy.EndLeftQuarantine
	wanted.Leftovers, wanted.FormerName = framework.StringSet(now.Leftovers), formerName
	wish.Move(steps, byKey)
	if allocate.In(steps, allocate.DoReserve) != nil && r.reserve(ctx, plan, wanted, limit, diags) != nil {
		now.leave(ctx, byKey)
		framework.Show(diags, allocate.WithoutNode(wanted.Members)...)
		return nil
	}
	if allocate.In(steps, allocate.DoDomains) != nil {
		if _, err := allocate.RefreshGroup(ctx, r.Site, wanted); err != nil {
			framework.ReportUndone(diags, "read the "+plan.label(ctx), err)
		}
	}
	return byKey
}

// checkMoves reports an error if a member cannot give up its node, before anything is changed.
func (r *group) checkMoves(ctx context.Context, steps []allocate.Step, plan, now *model, diags *diag.Diagnostics) {
	limit, found := plan.Timeouts.Update(ctx, releaseTimeout)
	if diags.Append(found...); diags.HasError() {
		return
	}
	all, byKey := now.group(ctx)
	plan.wish(ctx).Move(steps, byKey)
	if err := allocate.CheckDepartures(ctx, r.Site, all.Members, limit); err != nil {
		framework.ReportUndone(diags, "move members of the "+now.label(ctx), err)
	}
}

// release releases members, and removes them from what exists now. It reports an error for each member that stays.
func (r *group) release(ctx context.Context, gone []string, plan, now *model, diags *diag.Diagnostics) {
	limit, found := plan.Timeouts.Update(ctx, releaseTimeout)
	if diags.Append(found...); diags.HasError() {
		return
	}
	entries := now.entries(ctx)
	_, byKey := now.group(ctx)
	var leaving []*allocate.GroupMember
	for _, key := range gone {
		leaving = append(leaving, byKey[key])
	}
	for i, err := range allocate.ReleaseMembers(ctx, r.Site, leaving, limit) {
		if err != nil {
			framework.ReportUndone(diags, "release member "+gone[i]+" of the "+now.label(ctx), err)
			continue
		}
		entries[gone[i]] = allocate.Member{}
	}
	if !diags.HasError() { // while one stays, all stay in the state: members have consecutive numbers
		maps.DeleteFunc(entries, func(key string, _ allocate.Member) bool { return slices.Contains(gone, key) })
	}
	now.setEntries(entries)
}

func (r *group) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.isHidden(ctx, &state, req.Private, &resp.Diagnostics) {
		return
	}
	all, byKey := state.group(ctx)
	if err := allocate.ReleaseLeftovers(ctx, r.Site, all); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "release what a killed run has reserved for the "+state.label(ctx), err)
		return // without a member the next refresh would forget the group, and its leftovers
	}
	keys := slices.Sorted(maps.Keys(byKey))
	kept := func(key string) bool { return r.Site.Run.HasTakenOver(notes.MarkCreation, byKey[key].ID) }
	if slices.ContainsFunc(keys, kept) {
		framework.WarnKept(&resp.Diagnostics, "members of the "+state.label(ctx))
		keys = slices.DeleteFunc(keys, kept)
	}
	var members []*allocate.GroupMember
	for _, key := range keys {
		members = append(members, byKey[key])
	}
	for i, err := range allocate.ReleaseGroup(ctx, r.Site, members, deploy.EndLeftQuarantine) {
		if err != nil {
			framework.ReportUndone(&resp.Diagnostics, "release member "+keys[i]+" of the "+state.label(ctx), err)
		}
	}
}

// ImportState finds the group by its name, NAME/SIZE, or the UUID of its first member.
func (r *group) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	found, err := allocate.FindGroup(ctx, r.Site, id)
	if err != nil {
		framework.ReportImport(&resp.Diagnostics, "import group "+id, err)
		return
	}
	framework.RecordImport(ctx, resp, found.First.UUID)
	var m model
	resp.Diagnostics.Append(resp.State.Get(ctx, &m)...)
	m.importGroup(found)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	kept.Imported = true
	store()
}
