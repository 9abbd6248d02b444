// Package runbook implements the resource metal_runbook: steps that operators run by name.
package runbook

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

var _ framework.Managed = (*runbook)(nil)

// New returns metal_runbook.
func New() resource.Resource { return newRunbook() }

// NewList returns the list resource metal_runbook.
func NewList() list.ListResource { return newRunbook() }

type runbook struct {
	framework.Collected[ironic.Procedure, model, *model]
}

func newRunbook() *runbook {
	return &runbook{framework.Collected[ironic.Procedure, model, *model]{
		Resource: framework.Resource{Type: "metal_runbook", IsThat: "UUID of the runbook."}, In: ironic.Runbooks, Thing: "runbook",
		Listing: "Lists the runbooks of Ironic that the user may see, or those with a name. Needs API 1.92.",
		Label:   func(found *ironic.Procedure) (id, name string) { return found.UUID, found.Name },
	}}
}

// Create creates the runbook, or takes over the one that a killed run has created.
func (r *runbook) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, by, err := procedure.CreateProcedure(ctx, r.Site, ironic.Runbooks, plan.body(), func(p *ironic.Procedure) bool {
		return plan.is(p, framework.SameSteps(ctx, framework.ByPosition, plan.Steps, p.Steps))
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
	err = procedure.EndProcedure(ctx, r.Site, ironic.Runbooks, made, by, plan.body(), plan.traits())
	if notes.IsSuperseded(err) {
		resp.State.RemoveResource(ctx)
	}
	framework.Report(&resp.Diagnostics, "create "+plan.Subject(), err)
}

func (r *runbook) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	if err := procedure.UpdateProcedure(ctx, r.Site, ironic.Runbooks, state.ID.ValueString(), state.body(), plan.body()); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change "+state.Subject(), err)
		return
	}
	if plan.changesTraits(&state) {
		partly := plan
		partly.Traits = state.Traits
		resp.Diagnostics.Append(resp.State.Set(ctx, &partly)...)
		if err := r.Site.Ironic.SetRunbookTraits(ctx, state.ID.ValueString(), plan.traits()); err != nil {
			framework.ReportUndone(&resp.Diagnostics, "change the traits of "+plan.Subject(), err)
			return
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}
