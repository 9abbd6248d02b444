package host

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// intent returns what a plan makes of a host, as far as no other node may have it too. info is the present driver_info, and before what was
// managed until now.
func (m *model) intent(ctx context.Context, config, state *model, info map[string]any, before managed) hosts.Intent {
	return hosts.IdentityChange{
		Was: hosts.Candidate{
			Name: state.Name.ValueString(), DriverInfo: info, Addresses: slices.Collect(maps.Keys(state.ports(ctx))),
			Bonds: bondsOf(state.bonds(ctx)),
		},
		Becomes: hosts.Candidate{
			UUID: state.ID.ValueString(), Name: m.Name.ValueString(), Driver: m.Driver.ValueString(),
			DriverInfo: driverInfoAfter(info, config.hostSettings(ctx, before).Enrollment(), before),
			Addresses:  slices.Sorted(maps.Keys(config.ports(ctx))),
			Bonds:      bondsOf(config.bonds(ctx)),
		},
		OpenName: m.Name.IsUnknown(), Open: !framework.FullyKnown(ctx, m.Name, config.BMC, config.DriverInfo, config.Ports,
			config.PortGroups),
		WithoutPorts: config.cablingOf(ctx, before).WithoutPorts, KeptBonds: bondsOf(m.bonds(ctx)),
	}.Intent()
}

// intended is intent of a plan; state is nil for a new host, of which it has what is known.
func (m *model) intended(ctx context.Context, config, state *model, before managed) hosts.Intent {
	if state != nil {
		return m.intent(ctx, config, state, state.driverInfo(ctx), before)
	}
	return hosts.Intent{Candidate: hosts.CandidateOf(config.hostSettings(ctx, nil).Enrollment(), config.cablingOf(ctx, nil)), Moves: true}
}

// bonds returns the known MAC addresses of port groups, by key.
func (m *model) bonds(ctx context.Context) map[string]string {
	macs := map[string]string{}
	for key, group := range m.portGroups(ctx) {
		if framework.IsSet(group.MAC) {
			macs[key] = group.MAC.ValueString()
		}
	}
	return macs
}

func bondsOf(byKey map[string]string) []string { return slices.Sorted(maps.Values(byKey)) }

// driverInfo returns the driver_info of a state, as far as it is known.
func (m *model) driverInfo(ctx context.Context) map[string]any {
	info := objectOf(m.DriverInfo)
	if info == nil {
		info = map[string]any{}
	}
	return driverInfoAfter(info, m.settings(ctx), nil)
}

func driverInfoAfter(info map[string]any, wanted ironic.Settings, before managed) map[string]any {
	after := maps.Clone(info)
	for _, key := range before.below("/driver_info") {
		delete(after, key)
	}
	maps.Copy(after, wanted.Keys("driver_info"))
	return after
}

// planIdentity refuses a change that gives a host what another node keeps, and tells the other hosts of the run what this one gives up.
func (h *host) planIdentity(ctx context.Context, config, state *model, who hosts.Intent, diags *diag.Diagnostics) {
	if !h.Known() || diags.HasError() {
		return
	}
	hosts.PlanMove(h.Site, who)
	if !who.Moves {
		return
	}
	if err := hosts.CheckMove(ctx, h.Site, who); err != nil {
		hosts.Moved(h.Site, who.UUID)
		reportTaken(ctx, diags, config, "change host "+state.label(), err)
	}
}

// reportTaken reports an error that left a host undone, at the attribute whose value belongs to another node.
func reportTaken(ctx context.Context, diags *diag.Diagnostics, config *model, doing string, err error) {
	taken := hosts.TakenOf(err)
	if taken == nil {
		framework.ReportUndone(diags, doing, err)
		return
	}
	summary, detail := failure.Explain(doing, err)
	framework.Show(diags, decide.Refuse(taken.At(!config.BMC.IsNull(), config.bonds(ctx)), summary, detail))
}
