package runbook

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

// ModifyPlan refuses settings that the server's API does not have, and warns of a runbook that Ironic would run on no node.
func (r *runbook) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	defer r.ForeseeChange(ctx, &resp.Diagnostics, "runbook", req)
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) || !r.Known() {
		return
	}
	var plan model
	var state *model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !r.Offers(ctx, &resp.Diagnostics, api.VersionRunbooks, "metal_runbook") {
		return
	}
	r.Requires(ctx, &resp.Diagnostics,
		framework.Feature{Used: !plan.Description.IsNull(), Since: api.VersionRunbookTraits, Name: path.Root("description")},
		framework.Feature{Used: !plan.Traits.IsNull(), Since: api.VersionRunbookTraits, Name: path.Root("traits")},
	)
	expect.ExpectRunbook(r.Site, plan.expected(ctx))
	if state == nil || !plan.Name.Equal(state.Name) || !plan.Traits.Equal(state.Traits) {
		r.checkTraits(ctx, &plan, &resp.Diagnostics)
	}
}

// expected returns what the hosts of the run may expect of the runbook.
func (m *model) expected(ctx context.Context) expect.Runbook {
	p := &ironic.Procedure{UUID: m.ID.ValueString(), Name: m.Name.ValueString(), Public: m.Public.ValueBool(), Traits: m.traits()}
	for _, step := range framework.RunbookSteps(m.Steps) {
		p.Steps = append(p.Steps, ironic.Step{Interface: step.Interface, Step: step.Step})
	}
	return expect.Runbook{Procedure: p, Open: !framework.FullyKnown(ctx, m.Name, m.Traits, m.Steps) || m.Traits.IsNull()}
}

// checkTraits warns of a runbook that Ironic would run on no node, because no node has one of its traits. Before API 1.112 the name of a
// runbook is its only trait, so checkTraits refuses a name that is no trait.
func (r *runbook) checkTraits(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	version, err := r.Site.Ironic.Microversion(ctx)
	if err != nil || diags.HasError() {
		return
	}
	const consequence = "Ironic runs the runbook only on nodes with one of its traits."
	switch {
	case version >= api.VersionRunbookTraits && !framework.FullyKnown(ctx, plan.Traits):
	case version >= api.VersionRunbookTraits && len(plan.Traits.Elements()) == 0:
		framework.Show(diags, procedure.NoTraits(plan.Subject()))
	case version >= api.VersionRunbookTraits:
		r.WarnMissingTraits(ctx, diags, path.Root("traits"), plan.traits(), consequence)
	case !framework.IsSet(plan.Name):
	case !framework.IsTrait(plan.Name.ValueString()):
		r.Requires(ctx, diags, framework.Feature{Used: true, Since: api.VersionRunbookTraits, Name: path.Root("name")})
	default:
		r.WarnMissingTraits(ctx, diags, path.Root("name"), []string{plan.Name.ValueString()}, consequence)
	}
}
