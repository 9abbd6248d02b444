package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

// planRestore plans that Ironic knows again what runs, and nothing else. It reports whether that is the plan.
func (d *deployment) planRestore(
	ctx context.Context, state *model, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) bool {
	if !framework.IsRestored(ctx, req, "the deployment on "+state.lostRecord().Machine, &resp.Diagnostics) {
		return false
	}
	plan := *state
	decided := deploy.DecideRestore(state.lostRecord().Machine, ironic.State(state.ProvisionState.ValueString()))
	framework.Show(&resp.Diagnostics, decided.Notices...)
	if len(decided.Steps) == 0 {
		return true
	}
	plan.Restores = types.Int64Value(state.Restores.ValueInt64() + 1)
	plan.ProvisionState, plan.LastError, plan.Failure = types.StringUnknown(), types.StringUnknown(), unknownFailure
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	framework.PlanSteps(ctx, req, resp, decided.Steps)
	return true
}

// restoration says what the restored record has of the deployment as Terraform has seen it last.
func (u *update) restoration() deploy.Restoration {
	r := deploy.Restoration{
		Instance: u.prior.InstanceID.ValueString(), VIFs: u.plan.vifs(), Protected: u.prior.Protected.ValueBool(), Timeout: u.limit,
	}
	seen := u.kept.Updated
	r.IsOlder = func(n *ironic.Node) bool { return lost.IsOther(seen, n, r.Instance) }
	if u.prior.AllocationID.ValueString() == r.Instance {
		r.Allocation = r.Instance
	}
	return r
}

// reportRestored notes the site of a restored deployment. It reports whether that has failed; the state then stays, and the next plan goes
// on.
func (d *deployment) reportRestored(ctx context.Context, m *machine.Machine, failed error, resp *resource.UpdateResponse) bool {
	if failed == nil {
		d.NoteNewSite(ctx, resp.Private, &resp.Diagnostics)
		return false
	}
	framework.ReportUndone(&resp.Diagnostics, "restore the deployment on node "+ironic.NodeLabel(m.Node()), failed)
	return true
}
