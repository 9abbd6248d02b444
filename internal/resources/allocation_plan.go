package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ModifyPlan refuses what the server's API does not have, and takes up an allocation that was interrupted, or makes it anew.
func (a *allocation) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan allocationModel
	var state *allocationModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	switch {
	case state == nil:
	case state.State.ValueString() == string(ironic.AllocationError):
		resp.Diagnostics.AddWarning("Failed allocation is made anew", fmt.Sprintf("Ironic has found no node for allocation %s, and does not look for one again: it is deleted, and another is made. "+
			"Ironic said: %s", state.ID.ValueString(), state.LastError.ValueString()))
		plan.planAnew(ctx, resp, "state")
	default:
		a.planReservation(ctx, &plan, state, resp)
	}
	if state != nil && len(resp.RequiresReplace) == 0 {
		plan.NodeName, plan.State, plan.LastError = state.NodeName, state.State, state.LastError
		if state.State.ValueString() == string(ironic.AllocationAllocating) {
			plan.State, plan.NodeID, plan.NodeName = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		}
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
	if !a.known() || (state != nil && req.Plan.Raw.Equal(req.State.Raw)) {
		return
	}
	a.requires(ctx, &resp.Diagnostics,
		feature{true, 52, path.Root("resource_class")},
		feature{state != nil && !plan.Name.Equal(state.Name), 57, path.Root("name")},
		feature{state != nil && !plan.Extra.Equal(state.Extra), 57, path.Root("extra")},
		feature{!plan.Node.IsNull(), 58, path.Root("node")},
		feature{!plan.Owner.IsNull(), 60, path.Root("owner")},
	)
}

// planReservation plans whether changed demands need another node. What is not known yet is checked when it is.
func (a *allocation) planReservation(ctx context.Context, plan, state *allocationModel, resp *resource.ModifyPlanResponse) {
	changed := plan.demands(state)
	if len(changed) == 0 || !a.known() {
		return
	}
	misfits := changed // of a node that is gone
	if isSet(state.NodeID) {
		node, err := a.client.NodeForRefresh(ctx, state.NodeID.ValueString())
		switch {
		case err == nil:
			misfits = a.givesUp(ctx, plan, node, plan.misfits(node, changed), &resp.Diagnostics)
		case !ironic.IsNotFound(err):
			report(&resp.Diagnostics, "read node "+state.NodeID.ValueString(), err)
			return
		}
	}
	if len(misfits) > 0 {
		plan.planAnew(ctx, resp, misfits...)
	}
}

// planAnew plans another allocation in the place of this one, because of the named attributes.
func (m *allocationModel) planAnew(ctx context.Context, resp *resource.ModifyPlanResponse, why ...string) {
	for _, name := range why {
		resp.RequiresReplace.Append(path.Root(name))
	}
	m.ID, m.NodeID, m.NodeName = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	m.State, m.LastError, m.CreatedAt = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, m)...)
}

// givesUp decides for which of the demands that the reserved node does not satisfy it is given up, and says so. A name that
// no node has may be the one that this very apply gives to the reserved node; and it is not given up for nothing.
func (a *allocation) givesUp(ctx context.Context, plan *allocationModel, node *ironic.Node, misfits []string, diags *diag.Diagnostics) []string {
	if len(misfits) == 0 || a.client.Applying() { // Update refuses what only became known now
		return nil
	}
	census, err := a.client.Census(ctx, plan.spec(plan.ID.ValueString()))
	if err != nil {
		report(diags, "look for a node"+plan.purpose(), err)
		return nil
	}
	named := func(name string) bool { return name == "candidate_nodes" || name == "node" }
	if len(census.Missing) > 0 && !slices.ContainsFunc(misfits, func(name string) bool { return !named(name) }) {
		diags.AddAttributeWarning(path.Root(misfits[0]), "No node has this name yet", fmt.Sprintf(
			"Ironic knows no node %s. If this apply renames node %s to it, the node stays reserved and what is deployed on it stays; else the apply will fail here, "+
				"and change nothing. With the id of a metal_host in the place of its name, a renaming does not concern the allocation.",
			strings.Join(census.Missing, ", "), ironic.NodeLabel(node)))
		return nil
	}
	lacking := strings.Join(misfits, ", ")
	if census.Matching == 0 && !plan.CandidateNodes.IsUnknown() && !hasUnknown(plan.CandidateNodes) {
		diags.AddAttributeError(path.Root(misfits[0]), "No other node matches", fmt.Sprintf(
			"Node %s, which is reserved, does not satisfy %s, and no node could take its place: %s. It is not given up for nothing.\n\n"+
				"If a metal_host is to satisfy this by a change of its own, apply that first (-target), then this. "+
				"Else make a node available that matches, or ask for less. To give the node up all the same, destroy this allocation first.",
			ironic.NodeLabel(node), lacking, census))
		return nil
	}
	before := ""
	if !ironic.Settled(ironic.GoalUndeployed, ironic.State(node.ProvisionState)) {
		before = "when what is deployed on it has been undeployed, "
	}
	matching, _, _ := strings.Cut(census.String(), ":")
	diags.AddWarning("Reserved node is given up", fmt.Sprintf("Node %s does not satisfy %s: %sit is released, and another is reserved in its place. "+
		"Matching at present: %s.", ironic.NodeLabel(node), lacking, before, matching))
	return misfits
}

// demands names what a plan demands of the node otherwise than the state did.
func (m *allocationModel) demands(state *allocationModel) []string {
	var names []string
	for _, demand := range []struct {
		name          string
		after, before attr.Value
	}{
		{"resource_class", m.ResourceClass, state.ResourceClass},
		{"traits", m.Traits, state.Traits},
		{"candidate_nodes", m.CandidateNodes, state.CandidateNodes},
		{"owner", m.Owner, state.Owner},
		{"node", m.Node, state.Node},
	} {
		if !demand.after.Equal(demand.before) {
			names = append(names, demand.name)
		}
	}
	return names
}

// misfits are those of the named demands that a node does not satisfy. Null demands nothing; unknown is left open.
func (m *allocationModel) misfits(node *ironic.Node, names []string) []string {
	is := func(value types.String, have ...string) bool {
		return !isSet(value) || slices.Contains(have, value.ValueString())
	}
	candidates := stringSet(m.CandidateNodes)
	fits := map[string]bool{
		"resource_class":  is(m.ResourceClass, node.ResourceClass),
		"traits":          len(intersection(stringSet(m.Traits), node.Traits)) == len(stringSet(m.Traits)),
		"candidate_nodes": candidates == nil || len(intersection(candidates, []string{node.UUID, node.Name})) > 0 || hasUnknown(m.CandidateNodes),
		"owner":           is(m.Owner, node.Owner, node.Lessee),
		"node":            is(m.Node, node.UUID, node.Name),
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return fits[name] })
}

// hasUnknown reports whether an element of a set is not known yet.
func hasUnknown(s types.Set) bool {
	return slices.ContainsFunc(s.Elements(), func(v attr.Value) bool { return v.IsUnknown() })
}
