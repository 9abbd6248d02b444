package deploytemplate

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// ModifyPlan refuses a server without deploy templates, and warns of a trait that no node has.
func (r *deployTemplate) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer r.ForeseeChange(ctx, &resp.Diagnostics, "deploy_template", req)
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) || !r.Known() {
		return
	}
	var plan model
	var state *model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !r.Offers(ctx, &resp.Diagnostics, api.VersionDeployTemplates, "metal_deploy_template") {
		return
	}
	r.Requires(ctx, &resp.Diagnostics, framework.StepFeatures(path.Root("steps"), plan.Steps)...)
	if framework.IsSet(plan.Name) && (state == nil || !plan.Name.Equal(state.Name)) {
		r.WarnMissingTraits(ctx, &resp.Diagnostics, path.Root("name"), []string{plan.Name.ValueString()},
			"The template has no effect until a node has the trait, and a deployment asks for it.")
	}
}
