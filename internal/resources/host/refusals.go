package host

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
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
			DriverInfo: driverInfoAfter(info, config.hostSettings(ctx, before).Enrollment(), before), Addresses: slices.Sorted(maps.Keys(config.ports(ctx))),
			Bonds: bondsOf(config.bonds(ctx)),
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

// bondsOf returns the MAC addresses of port groups, sorted.
func bondsOf(byKey map[string]string) []string { return slices.Sorted(maps.Values(byKey)) }

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

// attributeRules are the rules of Ironic's policy that a change of an attribute needs.
var attributeRules = map[string]string{
	"automated_clean":        "node:update",
	"bios_settings":          expect.RuleProvision,
	"bmc":                    "node:update:driver_info",
	"boot_mode":              "node:set_boot_mode",
	"capabilities":           "node:update:properties",
	"cleaning_runbook":       "node:update:driver_info",
	"conductor_group":        "node:update:conductor_group",
	"console":                "node:set_console_state",
	"description":            "node:update",
	"disable_power_off":      "node:update:disable_power_off",
	"driver":                 "node:update:driver_interfaces",
	"driver_info":            "node:update:driver_info",
	"driver_info_wo_version": "node:update:driver_info",
	"extra":                  "node:update_extra",
	"firmware":               expect.RuleProvision,
	"hardware_interfaces":    "node:update:driver_interfaces",
	"lessee":                 "node:update:lessee",
	"maintenance":            "node:set_maintenance",
	"maintenance_reason":     "node:set_maintenance",
	"name":                   "node:update:name",
	"network_data":           "node:update:network_data",
	"owner":                  "node:update:owner",
	"parent_node":            "node:update:parent_node",
	"power_state":            "node:set_power_state",
	"properties":             "node:update:properties",
	"provision_state":        expect.RuleProvision,
	"raid":                   expect.RuleProvision,
	"resource_class":         "node:update",
	"retired":                "node:update:retired",
	"retired_reason":         "node:update:retired",
	"root_device":            "node:update:properties",
	"secure_boot":            "node:set_secure_boot",
	"shard":                  "node:update:shard",
	"traits":                 "node:traits:set",
}

// foreseeRefusals says what Ironic will refuse to the user. A new host may take a node over, which needs other rights.
func (h *host) foreseeRefusals(
	ctx context.Context, config, state *model, before managed, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	if state != nil {
		needs := rightsFor(partsOf(resp.Plan.Raw), partsOf(req.State.Raw), partsOf(req.Config.Raw), before)
		h.ForeseeRefusals(ctx, &resp.Diagnostics, h.FindNode(state.ID.ValueString()), needs...)
	} else if h.takesOver(ctx, config) == nil {
		h.ForeseeRefusals(ctx, &resp.Diagnostics, nil, framework.Right{Rule: "node:create"})
	}
}

// rightsFor returns the rights that a change from a state to a plan needs.
func rightsFor(plan, state, config map[string]tftypes.Value, before managed) (needs []framework.Right) {
	for _, name := range slices.Sorted(maps.Keys(plan)) {
		was, after := state[name], plan[name]
		if after.Equal(was) || !after.IsKnown() && config[name].IsNull() && name != "provision_state" {
			continue // what Ironic computes
		}
		rule, cleans := attributeRules[name], true
		switch name {
		case "automated_clean":
			if _ = after.As(&cleans); !after.IsNull() && !cleans {
				rule = "node:disable_cleaning"
			}
		case "ports", "port_groups":
			for _, does := range changesOf(partsOf(after), partsOf(was), before.below("/"+name)) {
				needs = append(needs, framework.RightAt(name, map[string]string{"ports": "port:", "port_groups": "portgroup:"}[name]+does))
			}
		}
		if rule != "" {
			needs = append(needs, framework.RightAt(name, rule))
		}
	}
	return needs
}

// changesOf returns what happens to the elements of a map: create, update, and delete for those that were managed.
func changesOf(after, was map[string]tftypes.Value, before []string) (does []string) {
	for key, value := range after {
		if old, had := was[key]; !had {
			does = append(does, "create")
		} else if !value.Equal(old) {
			does = append(does, "update")
		}
	}
	for _, key := range before {
		if _, has := after[key]; !has {
			does = append(does, "delete")
		}
	}
	slices.Sort(does)
	return slices.Compact(does)
}

// partsOf returns the attributes of an object or the elements of a map; none if it is null or unknown.
func partsOf(value tftypes.Value) map[string]tftypes.Value {
	parts := map[string]tftypes.Value{}
	if value.IsKnown() && !value.IsNull() {
		_ = value.As(&parts) // it is an object or a map
	}
	return parts
}
