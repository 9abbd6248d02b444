package allocation

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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// ModifyPlan refuses settings that the server's API does not have, and plans to continue an interrupted allocation, or to replace
// one that has failed or whose node does not fit any more.
func (a *allocation) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan model
	var state *model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if state != nil && state.isImported() {
		framework.RefuseUnread(&resp.Diagnostics, "allocation "+state.ID.ValueString())
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.IsNull() { // destroy
		if state != nil {
			a.WarnRelease(ctx, &resp.Diagnostics, state.ID.ValueString(), state.NodeID.ValueString())
			a.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
		}
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	switch {
	case state == nil:
		a.foresee(ctx, &plan, &resp.Diagnostics)
	case state.State.ValueString() == string(ironic.AllocationError):
		resp.Diagnostics.AddWarning("Failed allocation is replaced", fmt.Sprintf("Ironic has found no node for allocation %s, and does not try again. The provider deletes it, and creates another. "+
			"Ironic's last_error: %s.", state.ID.ValueString(), strings.TrimSuffix(state.LastError.ValueString(), ".")))
		plan.planAnew(ctx, resp, "state")
	default:
		a.planReservation(ctx, &plan, state, notedNode(ctx, req.Private), resp)
	}
	if state != nil && len(resp.RequiresReplace) > 0 {
		a.WarnRelease(ctx, &resp.Diagnostics, state.ID.ValueString(), state.NodeID.ValueString())
	}
	if state != nil && len(resp.RequiresReplace) == 0 {
		plan.NodeName, plan.State, plan.LastError = state.NodeName, state.State, state.LastError
		if state.State.ValueString() == string(ironic.AllocationAllocating) {
			plan.State, plan.NodeID, plan.NodeName = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		}
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
	if !a.Known() || (state != nil && req.Plan.Raw.Equal(req.State.Raw)) {
		return
	}
	a.Requires(ctx, &resp.Diagnostics, append(framework.RequireFeatures(plan.Require),
		framework.Feature{Used: true, Since: 52, Name: path.Root("resource_class")},
		framework.Feature{Used: state != nil && !plan.Name.Equal(state.Name), Since: 57, Name: path.Root("name")},
		framework.Feature{Used: state != nil && !plan.Extra.Equal(state.Extra), Since: 57, Name: path.Root("extra")},
		framework.Feature{Used: !plan.BackfillNode.IsNull(), Since: 58, Name: path.Root("backfill_node")},
		framework.Feature{Used: !plan.Owner.IsNull(), Since: 60, Name: path.Root("owner")},
	)...)
	a.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
}

// foresee warns of a new allocation for which Ironic would find no node now. It does not warn during an apply: the apply says itself
// what happens.
func (a *allocation) foresee(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	if plan.hasNoCandidates() {
		diags.AddAttributeWarning(path.Root("candidate_nodes"), "No candidates", noCandidates)
		return
	}
	if !a.Known() || a.Client.HasWritten() {
		return
	}
	vague := !framework.FullyKnown(ctx, plan.ResourceClass, plan.Traits, plan.CandidateNodes, plan.Owner, plan.BackfillNode, plan.Require)
	doubts, err := a.Client.Foresee(ctx, plan.request(ctx, ""), vague)
	if err != nil {
		framework.Report(diags, "look for a node"+plan.purpose(), err)
	}
	for _, doubt := range doubts {
		diags.AddAttributeWarning(path.Root(doubt.Attribute), doubt.Summary, plan.subject()+doubt.Detail)
	}
}

// planReservation plans whether the reserved node is given up. It decides from what the last refresh has noted of the node. Update
// checks the demands that are not known yet. node is nil if nothing is noted.
func (a *allocation) planReservation(ctx context.Context, plan, state *model, node *provision.ReservedNode, resp *resource.ModifyPlanResponse) {
	if plan.OnUnusable.IsUnknown() {
		resp.Diagnostics.AddAttributeError(path.Root("on_unusable"), "Value must be known during plan", "on_unusable decides whether the reserved node is replaced, so the plan must know it. Set it to a value that does not depend on a resource.")
		return
	}
	var why []string
	switch {
	case !framework.IsSet(state.NodeID):
		why = plan.demands(state)
	case node == nil:
	case node.Unusable != "" && plan.OnUnusable.ValueString() == onUnusableReplace:
		resp.Diagnostics.AddWarning("Unusable node is released", fmt.Sprintf("%sNothing is deployed on node %s, and nothing can be, because %s. It is released, and another node is reserved "+
			"(on_unusable = \"replace\").%s", plan.subject(), node.Label(), node.Unusable, a.matchingNow(ctx, plan)))
		why = []string{"node_id"}
	default:
		plan.warnUnusable(node, &resp.Diagnostics)
		why = a.givesUp(ctx, plan, node, plan.misfits(state, node), &resp.Diagnostics)
	}
	if len(why) > 0 {
		plan.planAnew(ctx, resp, why...)
		return
	}
	plan.keepCandidates(state)
	plan.keepRequire(ctx, state, node, &resp.Diagnostics)
}

// matchingNow returns a sentence about the nodes that the allocation could get now; "" if that is not known.
func (a *allocation) matchingNow(ctx context.Context, plan *model) string {
	if !a.Known() || a.Client.HasWritten() {
		return ""
	}
	census, err := a.Client.Census(ctx, plan.request(ctx, plan.ID.ValueString()))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" Nodes that match now: %s.", census)
}

// warnUnusable warns of a reserved node on which nothing can be deployed.
func (m *model) warnUnusable(node *provision.ReservedNode, diags *diag.Diagnostics) {
	if node.Unusable == "" {
		return
	}
	diags.AddWarning("Reserved node is unusable", fmt.Sprintf("%sNothing is deployed on node %s, and nothing can be, because %s. The node stays reserved, and deployments on it fail meanwhile. "+
		"Make the node usable again. To reserve another one instead, set on_unusable = \"replace\", or use terraform apply -replace for this resource. That ends only the reservation of this node.",
		m.subject(), node.Label(), node.Unusable))
}

// keepCandidates keeps the candidates of the state: they limit the search for a node, which is over. Terraform allows that for a value
// that was set before and still is. It warns of nothing: a list of available nodes lacks the reserved one in every plan.
func (m *model) keepCandidates(state *model) {
	if !m.CandidateNodes.IsNull() && !state.CandidateNodes.IsNull() {
		m.CandidateNodes = state.CandidateNodes
	}
}

// keepRequire keeps the requirements of the state, like keepCandidates. A reserved node is never given up for them, so keepRequire warns if
// the node does not meet the new ones.
func (m *model) keepRequire(ctx context.Context, state *model, node *provision.ReservedNode, diags *diag.Diagnostics) {
	if m.Require.IsNull() || state.Require.IsNull() || m.Require.Equal(state.Require) {
		return
	}
	if node != nil && framework.FullyKnown(ctx, m.Require) {
		if lacks := node.Lacks(framework.Requirements(ctx, m.Require)); lacks != "" {
			diags.AddAttributeWarning(path.Root("require"), "Reserved node does not meet require", fmt.Sprintf("%sNode %s does not meet require any more (%s). It stays reserved, because require limits only the search for a node. "+
				"To reserve another node, use terraform apply -replace for this resource: that also replaces its deployment, and wipes the machine.", m.subject(), node.Label(), lacks))
		}
	}
	m.Require = state.Require
}

// planAnew plans to replace the allocation, because of the named attributes.
func (m *model) planAnew(ctx context.Context, resp *resource.ModifyPlanResponse, why ...string) {
	for _, name := range why {
		resp.RequiresReplace.Append(path.Root(name))
	}
	m.ID, m.NodeID, m.NodeName = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	m.State, m.LastError, m.CreatedAt = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, m)...)
}

// givesUp returns the unsatisfied demands for which the reserved node is released, and warns of that. If backfill_node is a name
// that no node has, this apply may give that name to the reserved node, so the node stays reserved. If no other node matches,
// givesUp refuses the plan.
func (a *allocation) givesUp(ctx context.Context, plan *model, node *provision.ReservedNode, misfits []string, diags *diag.Diagnostics) []string {
	if len(misfits) == 0 || !a.Known() || a.Client.HasWritten() { // Update refuses demands that became known during the apply
		return nil
	}
	census, err := a.Client.Census(ctx, plan.request(ctx, plan.ID.ValueString()))
	if err != nil {
		framework.Report(diags, "look for a node"+plan.purpose(), err)
		return nil
	}
	if len(census.Missing) > 0 && slices.Equal(misfits, []string{"backfill_node"}) {
		diags.AddAttributeWarning(path.Root("backfill_node"), "No node has this name yet", fmt.Sprintf(
			"Ironic knows no node %s. If this apply gives node %s that name, the node stays reserved, and its deployment stays. Otherwise the apply fails for this resource, "+
				"and changes nothing. Use the id of a metal_host instead of its name: then renaming the host does not affect the allocation.",
			strings.Join(census.Missing, ", "), node.Label()))
		return nil
	}
	lacking := strings.Join(misfits, ", ")
	if census.IsEmpty() && framework.FullyKnown(ctx, plan.CandidateNodes, plan.Require) {
		diags.AddAttributeError(path.Root(misfits[0]), "No other node matches", fmt.Sprintf(
			"The reserved node %s does not satisfy %s, and no other node matches: %s. The provider does not release the node without a replacement.\n\n"+
				"If another change of this configuration makes a metal_host match, apply that first (-target), then this. "+
				"Otherwise make a matching node available, or demand less. To release the node anyway, destroy this allocation first.",
			node.Label(), lacking, census))
		return nil
	}
	matching, _, _ := strings.Cut(census.String(), ":")
	diags.AddWarning("Reserved node is released", fmt.Sprintf("Node %s does not satisfy %s: it is released, after its deployment is undeployed if it has one, and another node is reserved. "+
		"Nodes that match now: %s.", node.Label(), lacking, matching))
	return misfits
}

// demands returns the attributes whose demands on the node differ between state and plan.
func (m *model) demands(state *model) []string {
	var names []string
	for _, demand := range []struct {
		name          string
		after, before attr.Value
	}{
		{"resource_class", m.ResourceClass, state.ResourceClass},
		{"traits", m.Traits, state.Traits},
		{"owner", m.Owner, state.Owner},
		{"backfill_node", m.BackfillNode, state.BackfillNode},
	} {
		if !demand.after.Equal(demand.before) {
			names = append(names, demand.name)
		}
	}
	return names
}

// misfits returns the changed demands that a node does not satisfy. A null or unknown value demands nothing, and neither does a trait
// that was demanded before.
func (m *model) misfits(state *model, node *provision.ReservedNode) []string {
	is := func(value types.String, have ...string) bool {
		return !framework.IsSet(value) || slices.Contains(have, value.ValueString())
	}
	had := framework.StringSet(state.Traits)
	added := slices.DeleteFunc(framework.StringSet(m.Traits), func(trait string) bool { return slices.Contains(had, trait) })
	fits := map[string]bool{
		"resource_class": is(m.ResourceClass, node.Class),
		"traits":         len(framework.Intersection(added, node.Traits)) == len(added),
		"owner":          is(m.Owner, node.Owner, node.Lessee),
		"backfill_node":  is(m.BackfillNode, node.UUID, node.Name),
	}
	return slices.DeleteFunc(m.demands(state), func(name string) bool { return fits[name] })
}
