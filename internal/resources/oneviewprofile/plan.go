package oneviewprofile

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// ModifyPlan shows what sharing.Decide has decided, and stores the steps of an update.
func (o *oneviewProfile) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config, state *oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() || plan != nil && (o.Site == nil || !o.configured(&resp.Diagnostics)) {
		return
	}
	wish := sharing.Wish{Destroy: true}
	if plan != nil {
		wish = plan.wish()
		wish.NamesHardware = !config.HardwareURI.IsNull()
	}
	pool := o.Pool
	if !o.Known() || !o.HasOneView() {
		pool = nil
	}
	kept := framework.LoadPrivate[private](ctx, req.Private)
	decided, doing, err := sharing.Look(ctx, o.SiteInPlan(), pool, wish, state.seen(kept.said()))
	framework.Show(&resp.Diagnostics, decided.Notices...)
	framework.Report(&resp.Diagnostics, doing, err)
	if plan == nil {
		return
	}
	for _, name := range decided.Replaces {
		resp.RequiresReplace.Append(path.Root(name))
	}
	if state == nil {
		return
	}
	plan.forecast(state, decided)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	framework.PlanSteps(ctx, req, resp, decided.Steps)
}

func (m *oneviewProfileModel) wish() sharing.Wish {
	return sharing.Wish{
		Node: framework.TextOf[string](m.NodeID), Hardware: framework.TextOf[string](m.HardwareURI),
		Template: framework.TextOf[string](m.TemplateURI), Name: framework.TextOf[string](m.Name),
	}
}

// seen returns what Terraform has of the profile of a state; m may be nil.
func (m *oneviewProfileModel) seen(differences string) sharing.Seen {
	if m == nil {
		return sharing.Seen{}
	}
	was := m.wish()
	return sharing.Seen{
		Was: &was, URI: m.ID.ValueString(), Ownership: sharing.Ownership(m.Ownership.ValueString()),
		Strays:     m.Compliance.ValueString() == string(oneview.NonCompliant),
		Unfinished: m.Status.ValueString() == statusUnfinished, Deleting: m.Status.ValueString() == statusDeleting,
		Differences: differences,
	}
}

// forecast sets what the plan keeps, and the computed values of a profile that exists.
func (m *oneviewProfileModel) forecast(state *oneviewProfileModel, decided sharing.Plan) {
	kept := decided.Forecast.Wish
	m.NodeID, m.HardwareURI, m.TemplateURI = framework.TextValue(kept.Node), framework.TextValue(kept.Hardware),
		framework.TextValue(kept.Template)
	switch unknown := types.StringUnknown(); {
	case decided.Forecast.Stays:
		m.Ownership, m.Compliance, m.Status = state.Ownership, state.Compliance, state.Status
	case decided.Forecast.Changes:
		m.Ownership, m.Compliance, m.Status = unknown, unknown, unknown
	}
	if decided.Forecast.MayBeAnotherOne {
		m.ID = types.StringUnknown()
	}
}
