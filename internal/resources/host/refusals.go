package host

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/admission"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

// intent returns what a plan makes of a host, as far as no other node may have it too. info is the present driver_info, and before what was
// managed until now.
func (m *model) intent(ctx context.Context, config, state *model, info map[string]any, before managed) admission.Intent {
	who := admission.Intent{
		Candidate: admission.Candidate{
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
	who.Moves = !m.Name.Equal(state.Name) || len(who.Drops) > 0 || driverinfo.IdentifyBMC(who.DriverInfo) != driverinfo.IdentifyBMC(info) ||
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
	admission.PlanHost(h.Site, who)
	if !who.Moves {
		return
	}
	if err := admission.CheckMove(ctx, h.Site, who); err != nil {
		admission.Moved(h.Site, who.UUID)
		reportTaken(ctx, diags, config, "change host "+state.label(), err)
	}
}

// reportTaken reports an error that left a host undone, at the attribute whose value belongs to another node.
func reportTaken(ctx context.Context, diags *diag.Diagnostics, config *model, doing string, err error) {
	taken := admission.TakenOf(err)
	if taken == nil {
		framework.ReportUndone(diags, doing, err)
		return
	}
	summary, detail := failure.Explain(doing, err)
	diags.AddAttributeError(config.pathOf(ctx, taken), summary, detail)
}

// pathOf returns the attribute whose value belongs to another node.
func (m *model) pathOf(ctx context.Context, taken *admission.Taken) path.Path {
	switch taken.What {
	case admission.SharedBMC:
		if m.BMC.IsNull() {
			return path.Root("driver_info")
		}
		return path.Root("bmc").AtName("address")
	case admission.SharedAddress:
		return path.Root("ports").AtMapKey(taken.Value)
	case admission.SharedBond:
		for key, group := range m.portGroups(ctx) {
			if group.MAC.ValueString() == taken.Value {
				return path.Root("port_groups").AtMapKey(key).AtName("mac")
			}
		}
	case admission.SharedName:
	}
	return path.Root("name")
}

// refuseBootAlone refuses new ports that may boot alone in groups without standalone ports. Ironic has such ports if they were
// changed later (reference/ironic.md#port-groups).
func (m *model) refuseBootAlone(ctx context.Context, state *model, diags *diag.Diagnostics) {
	var had map[string]portModel
	if state != nil {
		had = state.ports(ctx)
	}
	groups := m.portGroups(ctx)
	for mac, port := range m.ports(ctx) {
		key := port.PortGroup.ValueString()
		if _, exists := had[mac]; !exists && framework.IsFalse(groups[key].StandalonePorts) && port.PXEEnabled.ValueBool() {
			diags.AddAttributeError(path.Root("ports").AtMapKey(mac).AtName("pxe_enabled"), "Port cannot boot alone", fmt.Sprintf("Port group %s has standalone_ports = false, "+
				"so none of its ports can boot from the network alone. Set pxe_enabled = false, or standalone_ports = true.", key))
		}
	}
}

// refuseOtherNetworks refuses ports without a physical network in a group whose other ports have one (reference/ironic.md#port-groups).
// The ports are planned, so that those whose configuration omits it have the one that Ironic has.
func (m *model) refuseOtherNetworks(ctx context.Context, diags *diag.Diagnostics) {
	ports := m.ports(ctx)
	networks, macs := map[string]string{}, slices.Sorted(maps.Keys(ports))
	for _, mac := range macs {
		if key := ports[mac].PortGroup.ValueString(); networks[key] == "" {
			networks[key] = ports[mac].PhysicalNetwork.ValueString()
		}
	}
	for _, mac := range macs {
		port := ports[mac]
		network := networks[port.PortGroup.ValueString()]
		if !framework.IsSet(port.PortGroup) || network == "" || port.PhysicalNetwork.IsUnknown() || port.PhysicalNetwork.ValueString() == network {
			continue
		}
		has := "this one has none"
		if framework.IsSet(port.PhysicalNetwork) {
			has = "this one has " + port.PhysicalNetwork.String()
		}
		diags.AddAttributeError(path.Root("ports").AtMapKey(mac).AtName("physical_network"), "Port group on two networks", fmt.Sprintf("The ports of group %s must all have the same physical_network. "+
			"Another port has %q, and %s. Set it here, too.", port.PortGroup.ValueString(), network, has))
	}
}

// refuseKeptNames refuses to give a port the name of another port that keeps it, because the configuration omits its name.
func (m *model) refuseKeptNames(ctx context.Context, config *model, diags *diag.Diagnostics) {
	configured, holders := config.ports(ctx), map[string]string{}
	for mac, port := range m.ports(ctx) {
		if configured[mac].Name.IsNull() && framework.IsSet(port.Name) {
			holders[port.Name.ValueString()] = mac
		}
	}
	for mac, port := range configured {
		if other, kept := holders[port.Name.ValueString()]; kept && framework.IsSet(port.Name) {
			diags.AddAttributeError(path.Root("ports").AtMapKey(mac).AtName("name"), "Name of two ports", fmt.Sprintf("Port %s has the name %s in Ironic, and keeps it, because the configuration gives it no other name. "+
				"Names of ports are unique in Ironic. Give port %s another name, too.", other, port.Name, other))
		}
	}
}

// attributeRules are the rules of Ironic's policy that a change of an attribute needs.
var attributeRules = map[string]string{
	"automated_clean":        "node:update",
	"bios_settings":          expect.RuleProvision,
	"bmc":                    "node:update:driver_info",
	"boot_mode":              "node:set_boot_mode",
	"capabilities":           "node:update:properties",
	"conductor_group":        "node:update:conductor_group",
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
func (h *host) foreseeRefusals(ctx context.Context, config, state *model, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if state != nil {
		needs := rightsFor(partsOf(resp.Plan.Raw), partsOf(req.State.Raw), partsOf(req.Config.Raw), readManaged(ctx, req.Private))
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
