package inspectionrule

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// ValidateConfig checks conditions and actions.
func (r *inspectionRule) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	conditionOps().validate(m.Conditions, path.Root("conditions"), true, &resp.Diagnostics)
	actionOps().validate(m.Actions, path.Root("actions"), false, &resp.Diagnostics)
}

// ModifyPlan refuses a server without inspection rules, and replaces a rule that shall not be sensitive any more: Ironic does not
// change that.
func (r *inspectionRule) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer r.ForeseeChange(ctx, &resp.Diagnostics, "inspection_rule", req)
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	var plan model
	var state *model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if state != nil && state.Sensitive.ValueBool() && framework.IsFalse(plan.Sensitive) {
		resp.RequiresReplace.Append(path.Root("sensitive"))
	}
	if r.Known() {
		r.Offers(ctx, &resp.Diagnostics, api.VersionInspectionRules, "metal_inspection_rule")
	}
}
