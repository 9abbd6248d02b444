package allocationgroup

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// ModifyPlan shows what allocate.DecideGroup has decided, and refuses settings that the server's API does not have.
func (r *group) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state *model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || plan == nil && state == nil {
		return
	}
	if state != nil && r.RefuseLost(ctx, kindGroup, state.ID.ValueString(), "", req.Plan.Raw.IsNull(), &resp.Diagnostics) {
		return
	}
	if state != nil && plan != nil && framework.IsRestored(ctx, req, "the "+state.label(ctx), &resp.Diagnostics) {
		framework.Show(&resp.Diagnostics, allocate.DecideRestore("the "+state.label(ctx), !r.Restores())...)
		plan = state
		plan.Leftovers = types.SetUnknown(types.StringType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
		framework.PlanSteps(ctx, req, resp, []allocate.Step{{Do: allocate.DoRestore}})
		return
	}
	decided := r.decide(ctx, plan, state, framework.LoadPrivate[private](ctx, req.Private), &resp.Diagnostics)
	if plan == nil {
		r.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
		return
	}
	plan.setEntries(decided.Forecast.Members)
	if decided.Forecast.KeepsCandidates {
		plan.CandidateNodes = state.CandidateNodes
	}
	plan.Leftovers = types.SetNull(types.StringType)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	framework.PlanSteps(ctx, req, resp, decided.Steps)
	if !r.Known() || resp.Diagnostics.HasError() || resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	moves := allocate.In(decided.Steps, allocate.DoMove)
	r.Requires(ctx, &resp.Diagnostics, append(framework.RequireFeatures(plan.Require),
		framework.Feature{Used: true, Since: 52, Name: path.Root("resource_class")},
		framework.Feature{Used: state != nil && !plan.Name.Equal(state.Name), Since: 57, Name: path.Root("name")},
		framework.Feature{Used: !plan.Owner.IsNull(), Since: 60, Name: path.Root("owner")},
		framework.Feature{Used: moves != nil, Since: api.VersionRetired, Name: path.Root("replace_members")},
	)...)
	if moves != nil {
		leaves := state.entries(ctx)[moves.Members[0]].NodeID.V
		r.ForeseeRefusals(ctx, &resp.Diagnostics, r.FindNode(leaves), framework.RightAt("replace_members", "node:update:retired"),
			framework.RightAt("replace_members", expect.RuleProvision))
	}
	r.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
}

// decide decides what becomes of the group, and shows the notices. plan is nil if Terraform destroys it.
func (r *group) decide(ctx context.Context, plan, state *model, kept private, diags *diag.Diagnostics) allocate.GroupPlan {
	wish, doing := allocate.GroupWish{Destroy: true}, ""
	if plan != nil {
		wish, doing = plan.wish(ctx), "look for nodes for the "+plan.label(ctx)
	}
	site, seen := r.SiteInPlan(), state.seen(ctx, kept)
	for _, key := range slices.Sorted(maps.Keys(seen.Members)) {
		if site != nil && expect.EndsHost(site, seen.Members[key].NodeID.V) {
			seen.HostEnds = append(seen.HostEnds, key)
		}
	}
	decided, err := allocate.LookGroup(ctx, site, wish, seen)
	framework.Report(diags, doing, err)
	framework.Show(diags, decided.Notices...)
	if site != nil && plan != nil {
		tellDeployments(site, plan.label(ctx), seen.Members, allocate.In(decided.Steps, allocate.DoMove))
	}
	return decided
}

// tellDeployments records which allocations a group keeps, for the deployments that are planned after it. moves may be nil.
func tellDeployments(site *machine.Site, label string, members map[string]allocate.Member, moves *allocate.Step) {
	if len(members) == 0 {
		expect.CreateAllocation(site, label)
	}
	for key, m := range members {
		expect.KeepAllocation(site, label, m.ID.V)
		if moves != nil && slices.Contains(moves.Members, key) {
			expect.EndAllocation(site, m.ID.V)
		}
	}
}

// noteUnchanged records in private state that the state needs no change, if the plan of what was applied last is empty.
func (m *model) noteUnchanged(ctx context.Context, noted framework.PrivateState, diags *diag.Diagnostics) {
	if !diags.HasError() && allocate.DecideGroup(m.wish(ctx), m.seen(ctx, framework.LoadPrivate[private](ctx, noted))).IsEmpty() {
		diags.Append(framework.NothingToDecide(ctx, noted)...)
	}
}
