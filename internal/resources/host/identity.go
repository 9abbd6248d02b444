package host

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// intent returns what a plan makes of a host, as far as no other node may have it too. info is the present driver_info, and before what was
// managed until now.
func (m *model) intent(ctx context.Context, config, state *model, info map[string]any, before managed) enroll.Intent {
	who := enroll.Intent{
		Candidate: enroll.Candidate{
			UUID: state.ID.ValueString(), Name: m.Name.ValueString(), Driver: m.Driver.ValueString(),
			DriverInfo: driverInfoAfter(info, config.settings(ctx), before), Addresses: slices.Sorted(maps.Keys(config.ports(ctx))), Bonds: config.bonds(ctx),
		},
		Open: !framework.FullyKnown(ctx, m.Name, config.BMC, config.DriverInfo, config.Ports, config.PortGroups),
	}
	if m.Name.IsNull() && !state.Name.IsNull() {
		who.Drops = append(who.Drops, state.Name.ValueString())
	}
	who.Drops = append(who.Drops, config.cablingOf(ctx, before).WithoutPorts...)
	hadBonds := state.bonds(ctx)
	for _, mac := range hadBonds {
		if !slices.Contains(m.bonds(ctx), mac) {
			who.Drops = append(who.Drops, mac)
		}
	}
	had := slices.Collect(maps.Keys(state.ports(ctx)))
	who.Moves = !m.Name.Equal(state.Name) || len(who.Drops) > 0 || ironic.IdentifyBMC(who.DriverInfo) != ironic.IdentifyBMC(info) ||
		!containsAll(had, who.Addresses) || !containsAll(hadBonds, who.Bonds)
	return who
}

// containsAll reports whether all values are in a list.
func containsAll(list, values []string) bool {
	return !slices.ContainsFunc(values, func(value string) bool { return !slices.Contains(list, value) })
}

// bonds returns the known MAC addresses of port groups.
func (m *model) bonds(ctx context.Context) (macs []string) {
	for _, group := range m.portGroups(ctx) {
		if framework.IsSet(group.MAC) {
			macs = append(macs, group.MAC.ValueString())
		}
	}
	slices.Sort(macs)
	return macs
}

// driverInfo returns the driver_info of a state, as far as it is known.
func (m *model) driverInfo(ctx context.Context) map[string]any {
	info := objectOf(m.DriverInfo)
	if info == nil {
		info = map[string]any{}
	}
	return driverInfoAfter(info, m.settings(ctx), nil)
}

// driverInfoAfter returns the driver_info that a node has after a configuration was applied.
func driverInfoAfter(info map[string]any, wanted ironic.Settings, before managed) map[string]any {
	after := maps.Clone(info)
	for _, key := range before.below("/driver_info") {
		delete(after, key)
	}
	maps.Copy(after, wanted.Keys("driver_info"))
	return after
}

// planIdentity refuses a change that gives a host what another node keeps, and tells the other hosts of the run what this one gives up.
func (h *host) planIdentity(ctx context.Context, plan, config, state *model, before managed, diags *diag.Diagnostics) {
	if !h.Known() || diags.HasError() {
		return
	}
	who := plan.intent(ctx, config, state, state.driverInfo(ctx), before)
	enroll.PlanHost(h.Site, who)
	if !who.Moves {
		return
	}
	if err := enroll.CheckMove(ctx, h.Site, who); err != nil {
		enroll.Moved(h.Site, who.UUID)
		reportTaken(ctx, diags, config, "change host "+state.label(), err)
	}
}

// reportTaken reports an error that left a host undone, at the attribute whose value belongs to another node.
func reportTaken(ctx context.Context, diags *diag.Diagnostics, config *model, doing string, err error) {
	taken := enroll.TakenOf(err)
	if taken == nil {
		framework.ReportUndone(diags, doing, err)
		return
	}
	summary, detail := failure.Explain(doing, err)
	diags.AddAttributeError(config.pathOf(ctx, taken), summary, detail)
}

// pathOf returns the attribute whose value belongs to another node.
func (m *model) pathOf(ctx context.Context, taken *enroll.Taken) path.Path {
	switch taken.What {
	case enroll.SharedBMC:
		if m.BMC.IsNull() {
			return path.Root("driver_info")
		}
		return path.Root("bmc").AtName("address")
	case enroll.SharedAddress:
		return path.Root("ports").AtMapKey(taken.Value)
	case enroll.SharedBond:
		for key, group := range m.portGroups(ctx) {
			if group.MAC.ValueString() == taken.Value {
				return path.Root("port_groups").AtMapKey(key).AtName("mac")
			}
		}
	case enroll.SharedName:
	}
	return path.Root("name")
}
