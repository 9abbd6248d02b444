package allocation

import (
	"context"

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

// ModifyPlan shows what allocate.Decide has decided, and refuses settings that the server's API does not have.
func (a *allocation) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state *model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if state != nil && state.isImported() {
		framework.RefuseUnread(&resp.Diagnostics, "allocation "+state.ID.ValueString())
	}
	if resp.Diagnostics.HasError() || plan == nil && state == nil {
		return
	}
	if state != nil && a.RefuseLost(ctx, kindAllocation, state.ID.ValueString(), "", req.Plan.Raw.IsNull(), &resp.Diagnostics) {
		return
	}
	if state != nil && plan != nil && framework.IsRestored(ctx, req, "allocation "+state.ID.ValueString(), &resp.Diagnostics) {
		framework.Show(&resp.Diagnostics, allocate.DecideRestore(state.NodeName.ValueString(), !a.Restores())...)
		plan = state
		plan.State = types.StringUnknown()
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
		framework.PlanSteps(ctx, req, resp, []allocate.Step{{Do: allocate.DoRestore}})
		return
	}
	decided := a.decide(ctx, plan, state, req, resp)
	if plan == nil {
		a.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
		return
	}
	for _, name := range decided.Replaces {
		resp.RequiresReplace.Append(path.Root(name))
	}
	if site := a.SiteInPlan(); site != nil {
		tellDeployments(site, plan, state, len(decided.Replaces) > 0)
	}
	if plan.LastError = types.StringNull(); state != nil {
		plan.forecast(state, decided)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if state != nil {
		framework.PlanSteps(ctx, req, resp, decided.Steps)
	}
	if !a.Known() || (state != nil && req.Plan.Raw.Equal(req.State.Raw)) {
		return
	}
	a.Requires(ctx, &resp.Diagnostics, append(framework.RequireFeatures(plan.Require),
		framework.Feature{Used: true, Since: api.VersionAllocations, Name: path.Root("resource_class")},
		framework.Feature{Used: state != nil && !plan.Name.Equal(state.Name), Since: api.VersionAllocationChange, Name: path.Root("name")},
		framework.Feature{
			Used: state != nil && !plan.Extra.Equal(state.Extra), Since: api.VersionAllocationChange,
			Name: path.Root("extra"),
		},
		framework.Feature{Used: !plan.BackfillNode.IsNull(), Since: api.VersionBackfill, Name: path.Root("backfill_node")},
		framework.Feature{Used: !plan.Owner.IsNull(), Since: api.VersionAllocationOwner, Name: path.Root("owner")},
	)...)
	a.ForeseeChange(ctx, &resp.Diagnostics, "allocation", req)
}

// decide decides what becomes of the allocation, shows the notices, and stores the steps of an update. plan is nil if Terraform destroys
// it.
func (a *allocation) decide(ctx context.Context, plan, state *model, req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) allocate.Plan {
	wish, doing := allocate.Wish{Destroy: true}, "look for a node"
	if plan != nil {
		wish, doing = plan.wish(ctx), doing+plan.purpose()
	}
	decided, err := allocate.Look(ctx, a.SiteInPlan(), wish, state.seen(ctx, framework.LoadPrivate[private](ctx, req.Private)))
	framework.Report(&resp.Diagnostics, doing, err)
	framework.Show(&resp.Diagnostics, decided.Notices...)
	return decided
}

// tellDeployments records whether the plan keeps an allocation, for the deployments that are planned after it.
func tellDeployments(site *machine.Site, plan, state *model, replaces bool) {
	switch {
	case state == nil:
		expect.CreateAllocation(site, plan.Name.ValueString())
	case replaces:
		expect.EndAllocation(site, state.ID.ValueString())
	default:
		expect.KeepAllocation(site, state.Name.ValueString(), state.ID.ValueString())
	}
}

// forecast sets the computed values of an allocation that exists, and the values that the plan keeps.
func (m *model) forecast(state *model, decided allocate.Plan) {
	switch {
	case len(decided.Replaces) > 0:
		m.ID, m.NodeID, m.CreatedAt = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		m.NodeName, m.State, m.LastError = types.StringUnknown(), types.StringUnknown(), types.StringNull()
		return
	case decided.Forecast.Waits:
		m.State, m.NodeID, m.NodeName, m.LastError = types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), state.LastError
	default:
		m.NodeName, m.State, m.LastError = state.NodeName, state.State, state.LastError
	}
	if decided.Forecast.KeepsCandidates {
		m.CandidateNodes = state.CandidateNodes
	}
	if decided.Forecast.KeepsRequire {
		m.Require = state.Require
	}
}

// noteUnchanged records in private state that the state needs no change, if the plan of what was applied last is empty.
func (m *model) noteUnchanged(ctx context.Context, noted framework.PrivateState, diags *diag.Diagnostics) {
	if !diags.HasError() && allocate.Decide(m.wish(ctx), m.seen(ctx, framework.LoadPrivate[private](ctx, noted))).IsEmpty() {
		diags.Append(framework.NothingToDecide(ctx, noted)...)
	}
}
