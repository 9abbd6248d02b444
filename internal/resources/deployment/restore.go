package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// planRestore plans that Ironic knows again what runs, and nothing else.
func (d *deployment) planRestore(ctx context.Context, state *model, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan := *state
	decided := deploy.DecideRestore(state.lostRecord().Machine, ironic.State(state.ProvisionState.ValueString()))
	framework.Show(&resp.Diagnostics, decided.Notices...)
	if len(decided.Steps) == 0 {
		return
	}
	plan.Restores = types.Int64Value(state.Restores.ValueInt64() + 1)
	plan.ProvisionState, plan.LastError = types.StringUnknown(), types.StringUnknown()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	framework.PlanSteps(ctx, req, resp, decided.Steps)
}

// restoration says what the restored record has of the deployment as Terraform has seen it last.
func (u *update) restoration() deploy.Restoration {
	r := deploy.Restoration{
		Instance: u.prior.InstanceID.ValueString(), VIFs: u.plan.vifs(), Protected: u.prior.Protected.ValueBool(), Timeout: u.limit,
	}
	if u.prior.AllocationID.ValueString() == r.Instance {
		r.Allocation = r.Instance
	}
	return r
}
