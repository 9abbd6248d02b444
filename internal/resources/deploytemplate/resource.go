// Package deploytemplate implements the resource metal_deploy_template: deploy steps for machines with a trait.
package deploytemplate

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

var _ framework.Managed = (*deployTemplate)(nil)

// New returns metal_deploy_template.
func New() resource.Resource { return newDeployTemplate() }

// NewList returns the list resource metal_deploy_template.
func NewList() list.ListResource { return newDeployTemplate() }

type deployTemplate struct {
	framework.Collected[ironic.Procedure, model, *model]
}

func newDeployTemplate() *deployTemplate {
	return &deployTemplate{framework.Collected[ironic.Procedure, model, *model]{
		Resource: framework.Resource{Type: "metal_deploy_template", IsThat: "UUID of the deploy template."},
		In:       ironic.DeployTemplates, Thing: "deploy template",
		Listing: "Lists the deploy templates of Ironic, or those with a name. Needs API 1.55.",
		Label:   func(found *ironic.Procedure) (id, name string) { return found.UUID, found.Name },
	}}
}

// Create creates the template, or takes over the one that a killed run has created.
func (r *deployTemplate) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, by, err := procedure.CreateProcedure(ctx, r.Site, ironic.DeployTemplates, plan.body(), func(p *ironic.Procedure) bool {
		return framework.SameSteps(ctx, framework.ByPriority, plan.Steps, p.Steps)
	})
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "create "+plan.Subject(), err)
		return
	}
	plan.ID = types.StringValue(made.UUID)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if by != nil {
		framework.WarnTakenOver(&resp.Diagnostics, plan.Subject(), by)
	}
	err = procedure.EndProcedure(ctx, r.Site, ironic.DeployTemplates, made, by, plan.body(), nil)
	if notes.IsSuperseded(err) {
		resp.State.RemoveResource(ctx)
	}
	framework.Report(&resp.Diagnostics, "create "+plan.Subject(), err)
}

func (r *deployTemplate) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	if err := procedure.UpdateProcedure(ctx, r.Site, ironic.DeployTemplates, state.ID.ValueString(), state.body(),
		plan.body()); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change "+state.Subject(), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}
