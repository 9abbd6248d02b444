package host

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// All hosts have the same summaries, so that Terraform folds their warnings into one of each.
const (
	removesSummary = "Destroying removes the host from Ironic"
	staysSummary   = "Destroying leaves the host in Ironic"
)

// planDestroy says what destroying a host does to its node, and tells the other hosts of the run that it gives up everything. Terraform may
// plan to destroy a host before it refreshes it, so planDestroy says nothing of a node that is gone.
func (h *host) planDestroy(ctx context.Context, state *model, before managed, diags *diag.Diagnostics) {
	foreign := false
	if h.Known() {
		_, err := h.Client.NodeForRefresh(ctx, state.ID.ValueString())
		if err == nil {
			foreign, err = h.mayBeForeign(ctx, state.ID.ValueString(), before)
		}
		if err != nil {
			return // Delete reports it
		}
	}
	if state.warnDestroy(foreign, diags) && h.Known() {
		h.ForeseeRefusals(ctx, diags, h.FindNode(state.ID.ValueString()), framework.Right{Rule: "node:delete"})
		h.Client.PlanHost(provision.Intent{Candidate: provision.Candidate{UUID: state.ID.ValueString()}, Ends: true})
	}
}

// warnDestroy warns how destroying a host affects its node, and reports whether it removes the node. A foreign node belongs to a discovery.
func (m *model) warnDestroy(foreign bool, diags *diag.Diagnostics) (removes bool) {
	switch {
	case m.OnDestroy.ValueString() == destroyForget:
		diags.AddWarning(staysSummary, fmt.Sprintf("on_destroy is \"forget\": node %s stays in Ironic as it is. Terraform does not manage it any more.", m.label()))
	case foreign:
		diags.AddWarning(staysSummary, fmt.Sprintf("Node %s was discovered, and no configuration was applied to it, so it stays in Ironic. Terraform does not manage it any more.", m.label()))
	case m.byAgent() && isOccupied(m.node()):
		diags.AddAttributeError(path.Root("on_destroy"), "Deployed host cannot be removed", fmt.Sprintf("Host %s is in state %q. Ironic removes no deployed node, and cannot undeploy this one without BMC credentials. "+
			"To leave it in Ironic, set on_destroy = \"forget\" on the metal_host, too, and apply; then destroy. Or give the host a bmc in place of power_control.", m.label(), m.ProvisionState.ValueString()))
	default:
		diags.AddWarning(removesSummary, fmt.Sprintf("Node %s is removed from Ironic; the machine itself is left as it is. The value of on_destroy that was applied last counts (here: delete). "+
			"To leave the node in Ironic, set on_destroy = \"forget\" and apply before you destroy.", m.label()))
		return true
	}
	return false
}
