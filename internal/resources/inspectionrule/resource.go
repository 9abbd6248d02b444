// Package inspectionrule implements the resource metal_inspection_rule: what Ironic does with machines that it has inspected.
package inspectionrule

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

var (
	_ resource.ResourceWithConfigure      = (*inspectionRule)(nil)
	_ resource.ResourceWithIdentity       = (*inspectionRule)(nil)
	_ resource.ResourceWithImportState    = (*inspectionRule)(nil)
	_ resource.ResourceWithModifyPlan     = (*inspectionRule)(nil)
	_ resource.ResourceWithValidateConfig = (*inspectionRule)(nil)
)

// New returns metal_inspection_rule.
func New() resource.Resource { return &inspectionRule{} }

type inspectionRule struct{ framework.WithClient }

// Metadata names the resource.
func (r *inspectionRule) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_inspection_rule"
}

// IdentitySchema describes its identity.
func (r *inspectionRule) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = framework.IdentitySchema("UUID of the inspection rule.")
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
		framework.ReportUndone(&resp.Diagnostics, "create "+plan.label(), err)
		return
	}
	plan.ID = types.StringValue(made.UUID)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if takenOver {
		framework.Show(&resp.Diagnostics, procedure.RuleTakenOver(made))
	}
}

// Read refreshes the state.
func (r *inspectionRule) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	found := framework.ReadFrom[ironic.InspectionRule](ctx, r.Site, ironic.InspectionRules, state.ID.ValueString(), state.label(), resp)
	if found == nil {
		return
	}
	state.refresh(ctx, found)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Update changes the rule in place.
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
		framework.ReportUndone(&resp.Diagnostics, "change "+state.label(), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Delete deletes the rule. What it did to machines stays.
func (r *inspectionRule) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	framework.DeleteFrom(ctx, r.Site, ironic.InspectionRules, state.ID.ValueString(), state.label(), &resp.Diagnostics)
}

// ImportState finds the rule by UUID or description.
func (r *inspectionRule) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	found, err := procedure.FindRule(ctx, r.Site, id)
	if err != nil {
		framework.ReportImport(&resp.Diagnostics, "import inspection rule "+id, err)
		return
	}
	framework.RecordImport(ctx, resp, found.UUID)
}
