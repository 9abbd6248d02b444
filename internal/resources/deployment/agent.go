package deployment

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// agentAdvice says how a node gets what Ironic lacks.
const agentAdvice = "Ironic has no BMC credentials of the machine (power_control = \"agent\" on its metal_host). First give the metal_host a bmc with address, username and password_wo in place of power_control, and apply that."

// agentObstacle returns the setting with which a machine without BMC credentials cannot be deployed, and why; "" if there is none.
func (m *model) agentObstacle() (setting, why string) {
	switch {
	case m.OnDestroy.ValueString() != destroyForget && !m.OnDestroy.IsUnknown():
		return "on_destroy", "it could not be undeployed. Set on_destroy = \"forget\" to deploy it without credentials"
	case m.quarantines():
		return "on_failure", "it could not be undeployed after a failure. Remove on_failure"
	case !m.LiveISO.IsNull():
		return "live_iso", "it cannot be booted from an ISO"
	case framework.IsSet(m.PowerState):
		return "power_state", "it cannot be switched"
	}
	return "", ""
}

// checkAgent refuses a plan for a machine without BMC credentials that needs them: it rebuilds, restarts, replaces or undeploys
// the machine, now or when the resource is destroyed. With plan nil, the resource is destroyed.
func (d *deployment) checkAgent(ctx context.Context, plan, config, state *model, replaces bool, diags *diag.Diagnostics) {
	node := d.agentNode(ctx, plan, state)
	if node == nil {
		return
	}
	refuse := func(at path.Path, why string) {
		diags.AddAttributeError(at, "Machine without BMC credentials", fmt.Sprintf("Node %s: %s. %s", ironic.NodeLabel(node), why, agentAdvice))
	}
	switch {
	case plan == nil && state.OnDestroy.ValueString() != destroyForget:
		refuse(path.Root("on_destroy"), "it cannot be undeployed")
	case plan == nil:
	case replaces && state.OnDestroy.ValueString() != destroyForget:
		refuse(path.Root("on_destroy"), "it cannot be undeployed, which the replacement needs")
	case state != nil && !replaces && plan.ProvisionState.IsUnknown() && provision.Finished(ironic.State(state.ProvisionState.ValueString())):
		refuse(path.Root("image"), "it cannot be rebuilt or restarted")
	case state != nil && !replaces && !plan.Restarts.Equal(state.Restarts):
		refuse(path.Root("restart_triggers"), "it cannot be restarted")
	default:
		check := *plan
		check.PowerState = config.PowerState
		if setting, why := check.agentObstacle(); setting != "" {
			refuse(path.Root(setting), why)
		}
	}
}

// agentNode returns the node of a plan or state if Ironic has no BMC credentials of it and works through its agent; else nil.
func (d *deployment) agentNode(ctx context.Context, plan, state *model) *ironic.Node {
	ref := ""
	if plan != nil {
		ref = cmp.Or(plan.ID.ValueString(), plan.NodeID.ValueString())
	}
	if state != nil {
		ref = cmp.Or(ref, state.ID.ValueString())
	}
	if ref == "" || !d.Known() {
		return nil
	}
	node, err := d.Client.NodeForRefresh(ctx, ref)
	if err != nil || !provision.ByAgent(node) {
		return nil
	}
	return node
}
