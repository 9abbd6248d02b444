package allocationgroup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// ModifyPlan plans the keys of members and what is known of each, refuses settings that the server's API does not have, and warns if too few
// nodes match.
func (r *group) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan model
	var state *model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if req.Plan.Raw.IsNull() {
		if state != nil {
			state.warnLeftovers(framework.StringSet(state.Leftovers), &resp.Diagnostics)
			members := state.entries(ctx)
			for _, key := range slices.Sorted(maps.Keys(members)) {
				r.WarnRelease(ctx, &resp.Diagnostics, members[key].ID.ValueString(), members[key].NodeID.ValueString())
			}
			r.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
		}
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.planMembers(ctx, state)
	if plan.keepCandidates(ctx, state); plan.hasNoCandidates() && plan.searches(ctx) {
		resp.Diagnostics.AddAttributeError(path.Root("candidate_nodes"), "No candidates", noCandidates)
	}
	plan.Leftovers = types.SetNull(types.StringType)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if state != nil {
		plan.warnChanges(ctx, state, &resp.Diagnostics)
	}
	if !r.Known() || resp.Diagnostics.HasError() || resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	r.Requires(ctx, &resp.Diagnostics, append(framework.RequireFeatures(plan.Require),
		framework.Feature{Used: true, Since: 52, Name: path.Root("resource_class")},
		framework.Feature{Used: state != nil && !plan.Name.Equal(state.Name), Since: 57, Name: path.Root("name")},
		framework.Feature{Used: !plan.Owner.IsNull(), Since: 60, Name: path.Root("owner")},
	)...)
	r.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
	releases := state != nil && len(plan.unneeded(state)) > 0 // then more nodes become free than the forecast counts
	if !resp.Diagnostics.HasError() && !r.Client.HasWritten() && !releases {
		r.foresee(ctx, &plan, &resp.Diagnostics)
	}
}

// planMembers plans members: its keys if name and size are known, and the values of the members that have a node.
func (m *model) planMembers(ctx context.Context, state *model) {
	prefix, known, domains := "", map[string]memberModel{}, true
	switch {
	case m.Size.IsUnknown() || state == nil && m.Name.IsUnknown():
		m.Members = types.MapUnknown(memberType)
		return
	case state == nil:
		prefix = m.Name.ValueString()
	default:
		prefix, known, domains = state.keyPrefix(), state.entries(ctx), m.SpreadBy.Equal(state.SpreadBy)
	}
	entries := map[string]memberModel{}
	for i := range int(m.Size.ValueInt64()) {
		key := provision.MemberName(prefix, i)
		e, has := known[key]
		if !has || e.ID.IsNull() {
			e.ID = types.StringUnknown()
		}
		if !has || e.NodeID.IsNull() {
			e.NodeID, e.NodeName, e.Domain = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		}
		if !domains {
			e.Domain = types.StringUnknown()
		}
		entries[key] = e
	}
	m.setEntries(entries)
}

// keepCandidates keeps the candidates of the state while all members have nodes, as for a single allocation: they limit the search for nodes,
// which is over. A list of available nodes from a data source changes with every reservation. Terraform allows that for a value that was set
// before and still is.
func (m *model) keepCandidates(ctx context.Context, state *model) {
	if state != nil && !m.CandidateNodes.IsNull() && !state.CandidateNodes.IsNull() && !m.Members.IsUnknown() && !m.searches(ctx) {
		m.CandidateNodes = state.CandidateNodes
	}
}

// searches reports whether the plan looks for a node for a member, as far as it knows the members.
func (m *model) searches(ctx context.Context) bool {
	for _, e := range m.entries(ctx) {
		if e.NodeID.IsUnknown() {
			return true
		}
	}
	return false
}

// hasNoCandidates reports whether no node may be reserved. Ironic would take an empty list for no limit.
func (m *model) hasNoCandidates() bool {
	return framework.IsSet(m.CandidateNodes) && len(m.CandidateNodes.Elements()) == 0
}

// warnChanges warns of members that are released, and says that the others keep their nodes.
func (m *model) warnChanges(ctx context.Context, state *model, diags *diag.Diagnostics) {
	before := state.entries(ctx)
	if !m.Size.IsUnknown() {
		if gone := beyond(before, state.keyPrefix(), int(m.Size.ValueInt64())); len(gone) > 0 {
			diags.AddAttributeWarning(path.Root("size"), "Members are released", fmt.Sprintf("The %s releases %s. If the configuration makes its metal_deployment resources with for_each over members, "+
				"this apply also destroys their deployments, which wipes the machines. The update waits for that up to timeouts.update, and then fails for members whose nodes are still in use.",
				state.label(), nodesOf(before, gone)))
		}
	}
	state.warnLeftovers(m.unneeded(state), diags)
	if names := m.changed(state); len(names) > 0 {
		diags.AddAttributeWarning(path.Root(names[0]), "Members keep their nodes", fmt.Sprintf("The change of %s in %s concerns only members that get a node later. The members that have a node keep it. "+
			"To choose all nodes again, use terraform apply -replace for this resource: that also replaces the deployments, and wipes the machines.", strings.Join(names, ", "), state.label()))
	}
}

// warnLeftovers warns that the apply releases leftovers.
func (m *model) warnLeftovers(names []string, diags *diag.Diagnostics) {
	if len(names) > 0 {
		diags.AddAttributeWarning(path.Root("size"), "Reservations of a killed run are released", fmt.Sprintf("A run was killed while it reserved nodes for the %s, and no state has these reservations. "+
			"The apply releases those that the group does not have: %s.", m.label(), strings.Join(names, ", ")))
	}
}

// unneeded returns the names of the leftovers that the planned group does not have.
func (m *model) unneeded(state *model) []string {
	if m.Size.IsUnknown() || m.Name.IsUnknown() {
		return nil
	}
	var members []string
	for i := range int(m.Size.ValueInt64()) {
		members = append(members, provision.MemberName(m.Name.ValueString(), i))
	}
	return slices.DeleteFunc(framework.StringSet(state.Leftovers), func(name string) bool { return slices.Contains(members, name) })
}

// foresee warns of new members for which there would be too few nodes now.
func (r *group) foresee(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	if plan.Members.IsUnknown() || plan.Name.IsUnknown() {
		return
	}
	wanted, _ := plan.group(ctx, plan.keyPrefix(), plan.entries(ctx), int(plan.Size.ValueInt64()))
	vague := !framework.FullyKnown(ctx, plan.ResourceClass, plan.Traits, plan.CandidateNodes, plan.Require, plan.Owner, plan.SpreadBy, plan.MaxPerDomain)
	doubts, err := r.Client.ForeseeGroup(ctx, wanted, vague)
	if err != nil {
		framework.Report(diags, "look for nodes for the "+plan.label(), err)
	}
	for _, doubt := range doubts {
		text := "Group " + plan.Name.ValueString() + ": " + doubt.Detail
		if doubt.Fatal {
			diags.AddAttributeError(path.Root(doubt.Attribute), doubt.Summary, text)
			continue
		}
		diags.AddAttributeWarning(path.Root(doubt.Attribute), doubt.Summary, text)
	}
}
