package host

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

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
	"skip_block_devices":     "node:update:properties",
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
		if framework.FullyKnown(ctx, config.Name) {
			framework.Show(&resp.Diagnostics, hosts.WarnTaken(ctx, h.Site, config.candidate(ctx))...)
		}
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
