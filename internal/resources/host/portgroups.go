package host

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type groupModel struct {
	Mode            types.String   `tfsdk:"mode"`
	MAC             types.String   `tfsdk:"mac"`
	StandalonePorts types.Bool     `tfsdk:"standalone_ports"`
	Properties      types.Map      `tfsdk:"properties"`
	PhysicalNetwork types.String   `tfsdk:"physical_network"`
	Category        types.String   `tfsdk:"category"`
	Extra           framework.JSON `tfsdk:"extra_json"`
}

var groupType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"mode": types.StringType, "mac": types.StringType, "standalone_ports": types.BoolType,
	"properties":       types.MapType{ElemType: types.StringType},
	"physical_network": types.StringType, "category": types.StringType, "extra_json": framework.JSONType{},
}}

var (
	groupKeyPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,200}$`)
	// bondModes are the modes of Linux bonds.
	bondModes = []string{"active-backup", "802.3ad", "balance-rr", "balance-xor", "balance-tlb", "balance-alb", "broadcast"}
)

func groupsSchema() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Port groups, by a key such as `bond0`. They configure [neither switches nor operating " +
			"systems](../guides/bonds.md). Ironic's name of a group is its key and the UUID of the node. A group that you remove is " +
			"deleted; its ports stay. Needs API 1.26.",
		Validators: []validator.Map{mapvalidator.KeysAre(groupKeyRule), mapvalidator.NoNullValues()},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"mode": text("Mode of the bond: `active-backup`, `802.3ad`, `balance-rr`, `balance-xor`, `balance-tlb`, `balance-alb` or "+
				"`broadcast`. Default: Ironic's configuration, usually `active-backup`.",
				stringvalidator.OneOf(bondModes...)),
			"mac":              text("MAC address of the bond, in lower case with colons.", framework.MACAddress),
			"standalone_ports": flag("Whether the ports may also be used alone, for example to boot from the network. Default: `true`."),
			"physical_network": free("Physical network, also of its ports. Default: that of its first port. Needs API 1.102.", 64),
			"category":         free("Like that of ports. Needs API 1.103.", 80),
			"extra_json":       extraSchema("with `lag`, which [Ironic 39 ignores](../guides/switch-ports.md#bonds)."),
			"properties": texts("Settings of the bond, such as `miimon = \"100\"`. A change replaces all of them.",
				framework.KeyValidators()...),
		}},
	}
}

func (m *model) portGroups(ctx context.Context) map[string]groupModel {
	return elementsOf[groupModel](ctx, m.PortGroups)
}

func groupsValue(ctx context.Context, groups map[string]groupModel) types.Map {
	value, _ := types.MapValueFrom(ctx, groupType, groups)
	return value
}

func (m *model) groupKeys(ctx context.Context) []string {
	return slices.Collect(maps.Keys(m.portGroups(ctx)))
}

// planGroups plans the port groups, and their attributes that the configuration omits. state is nil for a new host.
func (m *model) planGroups(ctx context.Context, config, state *model, before managed) {
	var had map[string]groupModel
	var hadPorts map[string]portModel
	if state != nil {
		hadPorts = state.ports(ctx)
	}
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
			old = groupModel{Mode: types.StringUnknown(), StandalonePorts: types.BoolUnknown(), Properties: types.MapNull(types.StringType)}
		}
		if bringNetwork(config.ports(ctx), hadPorts, key) {
			old.PhysicalNetwork = types.StringUnknown()
		}
		group.keepOmitted(&old)
		if group.Extra.IsNull() && !before.has("/group_extra/"+key) {
			group.Extra = old.Extra
		}
		wanted[key] = group
	}
	m.PortGroups = groupsValue(ctx, wanted)
}

// bringNetwork reports whether ports of a configuration bring a group another physical network, or one that is not known yet. had are the
// ports in state.
func bringNetwork(ports, had map[string]portModel, key string) bool {
	for mac, port := range ports {
		changes := !port.PhysicalNetwork.Equal(had[mac].PhysicalNetwork) || !port.PortGroup.Equal(had[mac].PortGroup)
		if port.PortGroup.ValueString() == key && !port.PhysicalNetwork.IsNull() && changes {
			return true
		}
	}
	return false
}

// hasStrays reports whether a port has another physical network than its group. Another client may have changed one of them alone.
func (m *model) hasStrays(ctx context.Context) bool {
	groups := m.portGroups(ctx)
	for _, port := range m.ports(ctx) {
		network := groups[port.PortGroup.ValueString()].PhysicalNetwork
		if framework.IsSet(network) && !network.Equal(port.PhysicalNetwork) {
			return true
		}
	}
	return false
}

// keepOmitted gives a group the values that it had before, for attributes that are null.
func (g *groupModel) keepOmitted(old *groupModel) {
	before := old.texts()
	for i, value := range g.texts() {
		if value.IsNull() {
			*value = *before[i]
		}
	}
	if g.StandalonePorts.IsNull() {
		g.StandalonePorts = old.StandalonePorts
	}
	if g.Properties.IsNull() {
		g.Properties = old.Properties
	}
}

// texts returns the attributes of a group that are plain strings, in a fixed order.
func (g *groupModel) texts() []*types.String {
	return []*types.String{&g.Mode, &g.MAC, &g.PhysicalNetwork, &g.Category}
}

func (g *groupModel) wish() hosts.PortGroup {
	return hosts.PortGroup{
		MAC: framework.TextOf[string](g.MAC), Standalone: framework.FlagOf(g.StandalonePorts),
		Network: framework.TextOf[string](g.PhysicalNetwork), Extra: framework.DocumentOf(g.Extra),
	}
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
				Mode: framework.OrNull(group.Mode), MAC: framework.OrNull(group.Address),
				StandalonePorts: types.BoolValue(group.StandalonePorts),
				Properties:      framework.WholeMap(known[key].Properties, framework.Scalars(group.Properties)),
				PhysicalNetwork: framework.OrNull(group.PhysicalNetwork), Category: framework.OrNull(group.Category),
				Extra: extraFrom(group.Extra, known[key].Extra, all),
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
		texts := group.texts()
		for i, value := range now.texts() {
			framework.Keep(value, *texts[i])
		}
		framework.Keep(&now.Extra, group.Extra)
		framework.Keep(&now.StandalonePorts, group.StandalonePorts)
		framework.Keep(&now.Properties, group.Properties)
		planned[key] = now
	}
	return groupsValue(ctx, planned)
}

// spec returns what the configuration says of a port group.
func (g *groupModel) spec() ironic.PortGroupSpec {
	return ironic.PortGroupSpec{
		Address: g.MAC.ValueString(), Mode: g.Mode.ValueString(), StandalonePorts: g.StandalonePorts.ValueBoolPointer(),
		Properties:      objectOf(g.Properties),
		PhysicalNetwork: g.PhysicalNetwork.ValueString(), Category: g.Category.ValueString(), Extra: setKeys(g.Extra),
	}
}

// groupKeyRule is the rule for keys of port_groups: what Ironic accepts in the name of a port group.
var groupKeyRule = stringvalidator.RegexMatches(groupKeyPattern, "must have 1 to 200 letters, digits and the characters . _ ~ -")
