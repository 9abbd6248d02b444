package host

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// warnTaken warns if OneView users have the hardware of a host that would be cleaned or inspected, and reports whether it did.
func (h *host) warnTaken(ctx context.Context, plan, config *model, diags *diag.Diagnostics) bool {
	if !h.Known() || !h.HasOneView() {
		return false
	}
	node := &ironic.Node{UUID: plan.describe()}
	if framework.IsSet(plan.ID) {
		known, err := h.Client.NodeForRefresh(ctx, plan.ID.ValueString())
		if err != nil {
			return false // the refresh has reported it
		}
		copied := *known
		node = &copied
	}
	info := map[string]any{}
	maps.Copy(info, node.DriverInfo)
	for key, value := range framework.StringMap(plan.DriverInfo) {
		info[key] = value
	}
	node.DriverInfo = info
	var taken *sharing.InUseError
	if err := h.Pool.CheckUsable(ctx, node); !errors.As(err, &taken) {
		return false // the apply reports other errors
	}
	if leavesService(plan, config) {
		diags.AddWarning("Server hardware is in use", fmt.Sprintf("As things are now, the apply takes host %s out of service until the server is free: %s. "+
			"Then metal oneview sync cleans it and makes it available.", plan.describe(), taken.Why()))
		return true
	}
	diags.AddWarning("Server hardware is in use", fmt.Sprintf("As things are now, the apply will fail for host %s: %v.", plan.describe(), taken))
	return true
}

// isOutOfService reports whether metal oneview sync has taken a host out of service, because OneView uses its hardware. A
// configuration that sets maintenance overrides that.
func isOutOfService(config, state *model) bool {
	return sharing.OutOfService(state.node()) && config.Maintenance.IsNull()
}

// planTemporary plans the removal of a temporary server profile that an interrupted run has left on the machine.
func (h *host) planTemporary(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	if !h.Known() || !h.HasOneView() || plan.ProvisionState.IsUnknown() || !provision.Parked(ironic.State(plan.ProvisionState.ValueString())) {
		return
	}
	node, err := h.Client.NodeForRefresh(ctx, plan.ID.ValueString())
	if err != nil {
		return // the refresh has reported it
	}
	profile, err := h.Pool.Temporarily(ctx, node)
	if err != nil {
		diags.AddWarning("Server profile cannot be read", fmt.Sprintf("The provider could not find out whether host %s has a temporary server profile: %v.", plan.describe(), err))
		return
	}
	if profile != nil {
		plan.ProvisionState = types.StringUnknown()
		diags.AddWarning("Temporary server profile is removed", fmt.Sprintf("An interrupted run has left server profile %s on host %s, or metal oneview sync was about to remove it.", oneview.ProfileLabel(profile), plan.describe()))
	}
}

// planUnguarded refuses to prepare a machine that is shared with OneView if the provider has no OneView configured.
func (h *host) planUnguarded(plan, config *model, diags *diag.Diagnostics) {
	idle := plan.TargetState.ValueString() != string(provision.GoalAvailable) && !plan.Inspect.ValueBool() && !framework.IsSet(config.PowerState)
	if h.Client == nil || h.Pool != nil || idle {
		return
	}
	info := map[string]any{}
	for key, value := range framework.StringMap(config.DriverInfo) {
		info[key] = value
	}
	if b, err := sharing.BindingOf(&ironic.Node{DriverInfo: info}); err == nil && b.Shared() {
		unguarded := sharing.UnguardedError{Node: plan.describe(), HardwareURI: b.HardwareURI}
		diags.AddAttributeError(path.Root("driver_info"), "Shared host without OneView", "As things are now, the apply will fail: "+unguarded.Why()+".")
	}
}
