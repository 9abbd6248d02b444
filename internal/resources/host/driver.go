package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// planDriver refuses a driver that the site lacks, and warns if the driver of a deployed machine changes. state is nil for a new host.
func (h *host) planDriver(ctx context.Context, plan, config, state *model, diags *diag.Diagnostics) {
	at := path.Root("driver")
	switch {
	case !config.BMC.IsNull():
		at = path.Root("bmc").AtName("address")
	case !config.PowerControl.IsNull():
		at = path.Root("power_control")
	}
	config.warnPassword(ctx, plan.Driver.ValueString(), state, diags)
	if h.Known() && framework.IsSet(plan.Driver) && (state == nil || !plan.Driver.Equal(state.Driver)) {
		if err := h.Client.CheckDriver(ctx, plan.Driver.ValueString()); err != nil {
			summary, detail := provision.Explain("plan host "+plan.describe(), err)
			diags.AddAttributeError(at, summary, detail)
			return
		}
	}
	if state == nil || !isOccupied(state.node()) || !framework.IsSet(plan.Driver) {
		return
	}
	before, was := state.scheme(ctx)
	_, becomes := config.scheme(ctx)
	changes := changesOfDriver(state.Driver.ValueString(), plan.Driver.ValueString(), was, becomes)
	if len(changes) == 0 {
		return
	}
	keep := ""
	if before != "" && at.Equal(path.Root("bmc").AtName("address")) {
		keep = fmt.Sprintf(" To keep it, write the address as it is now: %q.", before)
	}
	diags.AddAttributeWarning(at, "Driver of a deployed machine changes", fmt.Sprintf("Host %s is in state %q, and %s. The machine goes on running; from then on, Ironic switches, restarts, "+
		"rebuilds and cleans it that way.%s", plan.describe(), state.ProvisionState.ValueString(), strings.Join(changes, ", "), keep))
}

// scheme returns the BMC address of a model, and what it means; "" and nil if it has none.
func (m *model) scheme(ctx context.Context) (string, *ironic.BMC) {
	block := m.bmc(ctx)
	if block == nil || !framework.IsSet(block.Address) {
		return "", nil
	}
	bmc, err := ironic.ParseBMC(block.Address.ValueString())
	if err != nil {
		return "", nil
	}
	return block.Address.ValueString(), bmc
}

// plannedInterface returns the hardware interface of a kind that a configuration sets, also by the scheme of its BMC address; "" if it sets
// none.
func (m *model) plannedInterface(ctx context.Context, kind string) string {
	if name := m.interfaces()[kind]; name != "" {
		return name
	}
	_, bmc := m.scheme(ctx)
	if bmc == nil {
		return ""
	}
	return bmc.Interfaces[kind]
}

// warnPassword warns of a BMC user without a password, unless Ironic has one already. state is nil for a new host.
func (m *model) warnPassword(ctx context.Context, driver string, state *model, diags *diag.Diagnostics) {
	block := m.bmc(ctx)
	if block == nil || block.Username.IsNull() || !block.Password.IsNull() || !block.PasswordWO.IsNull() {
		return
	}
	if state != nil {
		_, was := state.scheme(ctx)
		_, becomes := m.scheme(ctx)
		if was == nil && state.Driver.ValueString() == driver || was != nil && becomes != nil && was.PasswordKey == becomes.PasswordKey {
			return
		}
	}
	diags.AddAttributeWarning(path.Root("bmc").AtName("username"), "BMC without a password", "bmc has a username and no password, so the BMC will probably refuse Ironic. "+
		"Set password_wo and password_wo_version, or password.")
}

// changesOfDriver says how the driver of a node changes, and the hardware interfaces that the schemes of two BMC addresses imply. was or
// becomes is nil if there is no such address.
func changesOfDriver(before, after string, was, becomes *ironic.BMC) []string {
	var changes []string
	if before != "" && before != after {
		changes = append(changes, fmt.Sprintf("its driver changes from %s to %s", before, after))
	}
	if was == nil || becomes == nil || len(changes) > 0 {
		return changes
	}
	kinds := maps.Clone(becomes.Interfaces)
	if kinds == nil {
		kinds = map[string]string{}
	}
	maps.Copy(kinds, was.Interfaces)
	name := func(interfaces map[string]string, kind string) string {
		if value := interfaces[kind]; value != "" {
			return value
		}
		return "the driver's default"
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if from, to := name(was.Interfaces, kind), name(becomes.Interfaces, kind); from != to {
			changes = append(changes, fmt.Sprintf("its %s interface changes from %s to %s", kind, from, to))
		}
	}
	return changes
}
