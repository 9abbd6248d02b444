package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// foreseeRefusals says what Ironic will refuse to the user.
func (d *deployment) foreseeRefusals(ctx context.Context, look deploy.Look, diags *diag.Diagnostics) {
	var find expect.FindNode
	switch {
	case !look.Plan.Forecast.Fresh:
		find = d.FindNode(look.Seen.ID)
	case look.Wish.Node.Set:
		find = look.Node
	}
	d.ForeseeRefusals(ctx, diags, find, rights(look)...)
}

// rights returns the rights that the apply of a plan needs. An allocation can be destroyed though its deployment cannot be made.
func rights(look deploy.Look) (needs []framework.Right) {
	need := func(when bool, attribute, rule string) {
		if when {
			needs = append(needs, framework.RightAt(attribute, rule))
		}
	}
	w, s, p := look.Wish, look.Seen, look.Plan
	need(p.Forecast.Fresh || p.Operates(), "node_id", expect.RuleProvision)
	if p.Forecast.Fresh {
		needs[0].OnlyWarns = !w.Allocation.IsNull()
		need(w.Allocation.IsNull(), "node_id", "node:update:instance_uuid")
		need(!w.VIFs.IsNull(), "vifs", "node:vif:attach")
		return needs
	}
	need(w.Rescue != s.Was.Rescue, "rescue", expect.RuleProvision)
	need(w.VIFs != s.Was.VIFs, "vifs", "node:vif:attach")
	need(w.Protected.Set && w.Protected.V != s.Protected, "protected", "node:update")
	need(w.Power.Set && w.Power != s.Power, "power_state", "node:set_power_state")
	need(p.Forecast.Restarts != decide.Known(s.Restarts), "restart_triggers", "node:set_power_state")
	return needs
}

// foreseeEnd says whether Ironic will refuse to undeploy the machine.
func (d *deployment) foreseeEnd(ctx context.Context, state *model, diags *diag.Diagnostics) {
	if state.OnDestroy.ValueString() != destroyForget && deploy.IsDeployed(&ironic.Node{ProvisionState: state.ProvisionState.ValueString()}) {
		d.ForeseeRefusals(ctx, diags, d.FindNode(state.ID.ValueString()), framework.Right{Rule: expect.RuleProvision, OnlyWarns: true})
	}
}
