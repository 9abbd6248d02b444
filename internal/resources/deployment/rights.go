package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// foreseeRefusals says what Ironic will refuse to the user.
func (d *deployment) foreseeRefusals(ctx context.Context, plan, config, state *model, fresh bool, diags *diag.Diagnostics) {
	var find provision.FindNode
	switch {
	case !fresh:
		find = d.FindNode(state.ID.ValueString())
	case framework.IsSet(plan.NodeID):
		find = func(ctx context.Context) (*ironic.Node, error) { return d.plannedNode(ctx, plan) }
	}
	d.ForeseeRefusals(ctx, diags, find, plan.rights(config, state, fresh)...)
}

// rights returns the rights that the apply of a plan needs. An allocation can be destroyed though its deployment cannot be made.
func (m *model) rights(config, state *model, fresh bool) (needs []framework.Right) {
	need := func(when bool, attribute, rule string) {
		if when {
			needs = append(needs, framework.RightAt(attribute, rule))
		}
	}
	need(fresh || m.ProvisionState.IsUnknown(), "node_id", provision.RuleProvision)
	if fresh {
		needs[0].OnlyWarns = !m.AllocationID.IsNull()
		need(m.AllocationID.IsNull(), "node_id", "node:update:instance_uuid")
		need(!m.VIFs.IsNull(), "vifs", "node:vif:attach")
		return needs
	}
	need(!m.Rescue.Equal(state.Rescue), "rescue", provision.RuleProvision)
	need(!m.VIFs.Equal(state.VIFs), "vifs", "node:vif:attach")
	need(!m.Protected.Equal(state.Protected), "protected", "node:update")
	need(framework.IsSet(config.PowerState) && !m.PowerState.Equal(state.PowerState), "power_state", "node:set_power_state")
	need(!m.Restarts.Equal(state.Restarts), "restart_triggers", "node:set_power_state")
	return needs
}

// foreseeEnd says whether Ironic will refuse to undeploy the machine.
func (d *deployment) foreseeEnd(ctx context.Context, state *model, diags *diag.Diagnostics) {
	if state.OnDestroy.ValueString() != destroyForget && state.occupied() {
		d.ForeseeRefusals(ctx, diags, d.FindNode(state.ID.ValueString()), framework.Right{Rule: provision.RuleProvision, OnlyWarns: true})
	}
}
