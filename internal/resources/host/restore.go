package host

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// restoring says what the restored record has of the host as Terraform has seen it last.
func (m *model) restoring() notes.Restoring {
	return notes.Restoring{
		State:       ironic.State(m.ProvisionState.ValueString()),
		Maintenance: m.Maintenance.ValueBool() && m.Fault.IsNull(), Reason: m.MaintenanceReason.ValueString(),
	}
}

// planRestore plans that the record which Ironic has lost is made anew, and nothing else. It reports whether that is the plan.
func (h *host) planRestore(
	ctx context.Context, state *model, kept *private, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) bool {
	if !framework.IsRestored(ctx, req, "host "+state.label(), &resp.Diagnostics) {
		return false
	}
	plan := *state
	decided := hosts.DecideRestore(state.label(), ironic.State(state.ProvisionState.ValueString()))
	framework.Show(&resp.Diagnostics, decided.Notices...)
	plan.Restores = types.Int64Value(state.Restores.ValueInt64() + 1)
	plan.ProvisionState, plan.LastError, plan.Fault = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	if kept.Managed.below("/power_state") == nil {
		plan.PowerState = types.StringUnknown()
	}
	h.storePlan(ctx, &plan, state, decided, kept, resp)
	return true
}

// planReturn plans what becomes of a host whose record is being restored. It reports whether that is all of the plan.
func (h *host) planReturn(
	ctx context.Context, state *model, kept *private, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) bool {
	if kept.Restored == nil {
		return false
	}
	decided := hosts.DecideReturn(state.label(), *kept.Restored, !h.Restores())
	framework.Show(&resp.Diagnostics, decided.Notices...)
	framework.KeepRestoring(req, "host "+state.label(), &resp.Diagnostics)
	plan := *state
	if len(decided.Steps) > 0 {
		plan.ProvisionState = types.StringUnknown()
	}
	if plan.ProvisionState.IsUnknown() || !req.Plan.Raw.Equal(req.State.Raw) {
		h.storePlan(ctx, &plan, state, decided, kept, resp)
	}
	return true
}

func (h *host) storePlan(
	ctx context.Context, plan, state *model, decided hosts.Plan, kept *private, resp *resource.ModifyPlanResponse,
) {
	kept.Plan = &decided
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	h.tellRun(ctx, plan, state, decided)
}

// restore makes the record anew that Ironic has lost, or ends that. If it fails, the next plan goes on with it.
func (h *host) restore(
	ctx context.Context, config, plan, state *model, kept *private, limit time.Duration, resp *resource.UpdateResponse,
) {
	m, cables, err := h.restored(ctx, config, state, kept, limit)
	if err == nil {
		err = m.Refresh(ctx)
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "restore the record of host "+state.label(), err)
		return
	}
	planned := *plan
	plan.fromNode(ctx, sight{node: m.Node(), Cables: cables}, false)
	plan.keepPlanned(ctx, &planned)
	plan.Restores, plan.Cleanings = planned.Restores, planned.Cleanings
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	doubtful := kept.Plan.LeavesDoubt(m.Node())
	kept.see(m.Node())
	kept.Plan, kept.Updated, kept.Anew = nil, lost.Seen(time.Time{}, m.Node()), doubtful
	h.NoteNewSite(ctx, resp.Private, &resp.Diagnostics)
}

// restoredKeys are the settings that a restored record has as Terraform has seen them last, also where the configuration does not have
// them: others have set them, or Ironic.
var restoredKeys = []string{
	"automated_clean", "conductor_group", "lessee", "owner", "resource_class", "retired", "retired_reason", "shard",
}

// restored does the step of a plan that restores a record.
func (h *host) restored(ctx context.Context, config, state *model, kept *private, limit time.Duration) (
	m *machine.Machine, cables hosts.Cables, err error,
) {
	if kept.Plan.Has(hosts.DoReturn) {
		if m, err = h.Site.Machine(ctx, state.ID.ValueString()); err == nil {
			err = hosts.Return(ctx, m, state.PowerState.ValueString() == framework.PowerOn && !config.PowerState.IsNull(), limit)
		}
		if err == nil {
			cables, err = hosts.ReadCables(ctx, h.Site, m.Node().UUID, !state.PortGroups.IsNull())
		}
		return m, cables, err
	}
	seen, settings := kept.Updated, config.hostSettings(ctx, nil)
	for key, value := range state.settings(ctx) { // a change of the configuration comes later: see framework.KeepRestoring
		if _, configured := settings.Settings[key]; configured || slices.Contains(restoredKeys, key) {
			settings.Settings[key] = value
		}
	}
	if settings.Capabilities != nil {
		settings.Capabilities = framework.StringMap(state.Capabilities)
	}
	if settings.Traits != nil {
		settings.Traits = framework.StringSet(state.Traits)
	}
	if settings.Settings["retired"] != true {
		delete(settings.Settings, "retired_reason")
	}
	return hosts.Restoration{
		ID: state.ID.ValueString(), Settings: settings, Cabling: config.cablingOf(ctx, nil), Was: state.restoring(),
		Instance: state.InstanceID.ValueString(), Limit: limit,
		IsOther: func(n *ironic.Node) bool { return lost.IsOther(seen, n, "") },
	}.Do(ctx, h.Site)
}
