package host

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type groupModel struct {
	Mode            types.String `tfsdk:"mode"`
	MAC             types.String `tfsdk:"mac"`
	StandalonePorts types.Bool   `tfsdk:"standalone_ports"`
	Properties      types.Map    `tfsdk:"properties"`
}

var groupType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"mode": types.StringType, "mac": types.StringType, "standalone_ports": types.BoolType, "properties": types.MapType{ElemType: types.StringType},
}}

var (
	groupKeyPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,200}$`)
	// bondModes are the modes of Linux bonds.
	bondModes = []string{"active-backup", "802.3ad", "balance-rr", "balance-xor", "balance-tlb", "balance-alb", "broadcast"}
)

func groupsSchema() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Port groups (bonds), by a key such as `bond0`. In Ironic, a group is named by its key and the UUID of the node, because names of groups are unique there. " +
			"A group that you remove is deleted; its ports stay. Needs API 1.26.",
		Validators: []validator.Map{mapvalidator.KeysAre(groupKeyRule)},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"mode": text("Mode of the bond: `active-backup`, `802.3ad`, `balance-rr`, `balance-xor`, `balance-tlb`, `balance-alb` or `broadcast`. Default: Ironic's configuration, usually `active-backup`.",
				stringvalidator.OneOf(bondModes...)),
			"mac":              text("MAC address of the bond, in lower case with colons.", framework.MACAddress),
			"standalone_ports": flag("Whether the ports may also be used alone, for example to boot from the network. Default: `true`."),
			"properties":       texts("Settings of the bond, such as `miimon = \"100\"`. A change replaces all of them.", framework.KeyValidators()...),
		}},
	}
}

// portGroups returns the port groups by key; nil if they are null or unknown.
func (m *model) portGroups(ctx context.Context) map[string]groupModel {
	return elementsOf[groupModel](ctx, m.PortGroups)
}

func groupsValue(ctx context.Context, groups map[string]groupModel) types.Map {
	value, _ := types.MapValueFrom(ctx, groupType, groups)
	return value
}

// lostGroups returns the keys of the groups that the prior configuration had and this one lacks.
func (m *model) lostGroups(ctx context.Context, before managed) map[string]bool {
	lost, stay := map[string]bool{}, m.portGroups(ctx)
	if m.PortGroups.IsUnknown() {
		return lost
	}
	for _, key := range before.below("/port_groups") {
		if _, stays := stay[key]; !stays {
			lost[key] = true
		}
	}
	return lost
}

// planGroups plans the port groups, and their attributes that the configuration omits. state is nil for a new host.
func (m *model) planGroups(ctx context.Context, config, state *model, before managed) {
	var had map[string]groupModel
	switch {
	case state == nil && config.PortGroups.IsNull(), config.PortGroups.IsNull() && before.has("/port_groups"):
		m.PortGroups = types.MapNull(groupType)
	case config.PortGroups.IsNull():
		m.PortGroups = state.PortGroups
	case state != nil:
		had = state.portGroups(ctx)
	}
	wanted := config.portGroups(ctx)
	if wanted == nil {
		return
	}
	for key, group := range wanted {
		old, exists := had[key]
		if !exists {
			old = groupModel{types.StringUnknown(), types.StringNull(), types.BoolUnknown(), types.MapNull(types.StringType)}
		}
		if group.Mode.IsNull() {
			group.Mode = old.Mode
		}
		if group.MAC.IsNull() {
			group.MAC = old.MAC
		}
		if group.StandalonePorts.IsNull() {
			group.StandalonePorts = old.StandalonePorts
		}
		if group.Properties.IsNull() {
			group.Properties = old.Properties
		}
		wanted[key] = group
	}
	m.PortGroups = groupsValue(ctx, wanted)
}

// fromGroups copies Ironic's port groups into the model; see fromNode. After an import these are the groups that have ports: the
// groups of other nodes are not read.
func (m *model) fromGroups(ctx context.Context, seen sight, all bool) {
	known := m.portGroups(ctx)
	if m.PortGroups.IsUnknown() || (known == nil && !all) {
		m.PortGroups = types.MapNull(groupType)
		return
	}
	now := map[string]groupModel{}
	for key, group := range seen.Groups {
		if _, ours := known[key]; ours || all {
			now[key] = groupModel{
				Mode: framework.OrNull(group.Mode), MAC: framework.OrNull(group.Address), StandalonePorts: types.BoolValue(group.StandalonePorts),
				Properties: framework.WholeMap(known[key].Properties, framework.Scalars(group.Properties)),
			}
		}
	}
	if all && len(now) == 0 {
		m.PortGroups = types.MapNull(groupType)
		return
	}
	m.PortGroups = groupsValue(ctx, now)
}

// keepGroups restores the known planned attributes of port groups, as keep does for other attributes.
func keepGroups(ctx context.Context, m, wanted *model) types.Map {
	planned := wanted.portGroups(ctx)
	if planned == nil {
		return m.PortGroups
	}
	actual := m.portGroups(ctx)
	for key, group := range planned {
		now, exists := actual[key]
		if !exists {
			now.Properties = types.MapNull(types.StringType)
		}
		framework.Keep(&now.Mode, group.Mode)
		framework.Keep(&now.MAC, group.MAC)
		framework.Keep(&now.StandalonePorts, group.StandalonePorts)
		framework.Keep(&now.Properties, group.Properties)
		planned[key] = now
	}
	return groupsValue(ctx, planned)
}

// spec returns what the configuration says of a port group.
func (g *groupModel) spec() ironic.PortGroupSpec {
	return ironic.PortGroupSpec{
		Address: g.MAC.ValueString(), Mode: g.Mode.ValueString(), StandalonePorts: g.StandalonePorts.ValueBoolPointer(), Properties: objectOf(g.Properties),
	}
}

// validatePorts checks what port groups and their ports must have in common.
func (m *model) validatePorts(ctx context.Context, diags *diag.Diagnostics) {
	ports, groups := m.ports(ctx), m.portGroups(ctx)
	names, networks := map[string]string{}, map[string]types.String{}
	for _, mac := range slices.Sorted(maps.Keys(ports)) {
		port, at := ports[mac], path.Root("ports").AtMapKey(mac)
		if name := port.Name.ValueString(); name != "" {
			if other, twice := names[name]; twice {
				diags.AddAttributeError(at.AtName("name"), "Two ports with one name", fmt.Sprintf("Port %s has the name %q, too. Names of ports are unique in Ironic.", other, name))
			}
			names[name] = mac
		}
		if !framework.IsSet(port.PortGroup) || m.PortGroups.IsUnknown() {
			continue
		}
		key := port.PortGroup.ValueString()
		if _, exists := groups[key]; !exists {
			diags.AddAttributeError(at.AtName("port_group"), "Unknown port group", fmt.Sprintf("port_groups has no group %q. %s", key, listOfGroups(groups)))
			continue
		}
		if !framework.IsSet(port.PhysicalNetwork) {
			continue // it may have the right one
		}
		network, known := networks[key]
		if known && !network.Equal(port.PhysicalNetwork) {
			diags.AddAttributeError(at.AtName("physical_network"), "Port group on two networks", fmt.Sprintf("The ports of group %s must all have the same physical_network. "+
				"This port has %s, and another one has %s.", key, port.PhysicalNetwork, network))
		}
		networks[key] = port.PhysicalNetwork
	}
	validateGroupMACs(groups, diags)
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

// validateGroupMACs refuses two port groups with one MAC address.
func validateGroupMACs(groups map[string]groupModel, diags *diag.Diagnostics) {
	owners := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		mac := groups[key].MAC.ValueString()
		if other, twice := owners[mac]; twice && mac != "" {
			diags.AddAttributeError(path.Root("port_groups").AtMapKey(key).AtName("mac"), "Two port groups with one MAC address", fmt.Sprintf("Port group %s has the MAC address %s, too.", other, mac))
		}
		owners[mac] = key
	}
}

// listOfGroups returns a sentence with the keys of port groups.
func listOfGroups(groups map[string]groupModel) string {
	if len(groups) == 0 {
		return "It is empty."
	}
	return "It has " + strings.Join(slices.Sorted(maps.Keys(groups)), ", ") + "."
}
