package resources

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// warnTaken warns that OneView users have the hardware of a host that is to be cleaned or inspected, and reports whether it did.
func (h *host) warnTaken(ctx context.Context, plan *hostModel, diags *diag.Diagnostics) bool {
	if !h.known() || !h.hasOneView() {
		return false
	}
	node := &ironic.Node{UUID: plan.describe()}
	if isSet(plan.ID) {
		known, err := h.client.NodeForRefresh(ctx, plan.ID.ValueString())
		if err != nil {
			return false // the refresh has said so
		}
		copied := *known
		node = &copied
	}
	info := map[string]any{}
	maps.Copy(info, node.DriverInfo)
	for key, value := range stringMap(plan.DriverInfo) {
		info[key] = value
	}
	node.DriverInfo = info
	var taken *oneview.InUseError
	if err := h.pool.Admit(ctx, node); !errors.As(err, &taken) {
		return false // other trouble comes up in the apply
	}
	diags.AddWarning("Server hardware is in use", fmt.Sprintf("As it is now, the apply will fail for host %s: %v.", plan.describe(), taken))
	return true
}

// isWithdrawn reports whether a host is out of service because its hardware is used by OneView. A configuration that has a
// will of its own about maintenance takes it out of that.
func isWithdrawn(config, state *hostModel) bool {
	return oneview.Withdrawn(state.node()) && config.Maintenance.IsNull()
}

// planTemporary plans the removal of a temporary server profile that an interrupted run has left on the machine.
func (h *host) planTemporary(ctx context.Context, plan *hostModel, diags *diag.Diagnostics) {
	if !h.known() || !h.hasOneView() || plan.ProvisionState.IsUnknown() || !ironic.Parked(ironic.State(plan.ProvisionState.ValueString())) {
		return
	}
	node, err := h.client.NodeForRefresh(ctx, plan.ID.ValueString())
	if err != nil {
		return // the refresh has said so
	}
	profile, err := h.pool.Temporarily(ctx, node)
	if err != nil {
		diags.AddWarning("Server profile cannot be read", fmt.Sprintf("Whether host %s has a temporary server profile is not known: %v.", plan.describe(), err))
		return
	}
	if profile != nil {
		plan.ProvisionState = types.StringUnknown()
		diags.AddWarning("Temporary server profile is removed", fmt.Sprintf("An interrupted run has left server profile %s on host %s, or metal-oneview sync was about to remove it.", oneview.ProfileLabel(profile), plan.describe()))
	}
}

// planUnguarded refuses to prepare a machine that is shared with OneView where no OneView is configured.
func (h *host) planUnguarded(plan, config *hostModel, diags *diag.Diagnostics) {
	idle := plan.TargetState.ValueString() != string(ironic.GoalAvailable) && !plan.Inspect.ValueBool() && !isSet(config.PowerState)
	if h.pool == nil || h.pool.OneView != nil || idle {
		return
	}
	info := map[string]any{}
	for key, value := range stringMap(config.DriverInfo) {
		info[key] = value
	}
	if b, err := oneview.BindingOf(&ironic.Node{DriverInfo: info}); err == nil && b.Shared() {
		unguarded := oneview.UnguardedError{Node: plan.describe(), HardwareURI: b.HardwareURI}
		diags.AddAttributeError(path.Root("driver_info"), "Shared host without OneView", "As it is now, the apply will fail: "+unguarded.Why()+".")
	}
}
