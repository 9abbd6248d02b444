// Package inspectionrule implements the resource metal_inspection_rule: what Ironic does with machines that it has inspected.
package inspectionrule

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

var (
	_ framework.Managed                   = (*inspectionRule)(nil)
	_ resource.ResourceWithValidateConfig = (*inspectionRule)(nil)
)

// New returns metal_inspection_rule.
func New() resource.Resource { return newInspectionRule() }

// NewList returns the list resource metal_inspection_rule.
func NewList() list.ListResource { return newInspectionRule() }

type inspectionRule struct {
	framework.Collected[ironic.InspectionRule, model, *model]
}

func newInspectionRule() *inspectionRule {
	r := &inspectionRule{framework.Collected[ironic.InspectionRule, model, *model]{
		Resource: framework.Resource{Type: "metal_inspection_rule", IsThat: "UUID of the inspection rule."},
		In:       ironic.InspectionRules, Thing: "inspection rule",
		Listing: "Lists the inspection rules of Ironic, or those with a description. A rule has no other name. Needs API 1.96.",
		Label:   func(found *ironic.InspectionRule) (id, name string) { return found.UUID, found.Description },
	}}
	r.Find = func(ctx context.Context, ref string) (*ironic.InspectionRule, error) {
		return procedure.FindRule(ctx, r.Site, ref)
	}
	return r
}

// Create creates the rule, or takes over the one that a killed run has created.
func (r *inspectionRule) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, takenOver, err := procedure.CreateRule(ctx, r.Site, plan.body())
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "create "+plan.Subject(), err)
		return
	}
	plan.ID = types.StringValue(made.UUID)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if takenOver {
		framework.Show(&resp.Diagnostics, procedure.RuleTakenOver(made))
	}
}

func (r *inspectionRule) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	if err := procedure.UpdateRule(ctx, r.Site, state.ID.ValueString(), state.body(), plan.body()); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change "+state.Subject(), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}
