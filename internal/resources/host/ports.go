package host

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

type portModel struct {
	PXEEnabled          types.Bool     `tfsdk:"pxe_enabled"`
	PhysicalNetwork     types.String   `tfsdk:"physical_network"`
	LocalLinkConnection types.Map      `tfsdk:"local_link_connection"`
	PortGroup           types.String   `tfsdk:"port_group"`
	Name                types.String   `tfsdk:"name"`
	Description         types.String   `tfsdk:"description"`
	IsSmartNIC          types.Bool     `tfsdk:"is_smartnic"`
	Vendor              types.String   `tfsdk:"vendor"`
	Category            types.String   `tfsdk:"category"`
	ExpectNeighbor      types.Object   `tfsdk:"expect_neighbor"`
	Extra               framework.JSON `tfsdk:"extra_json"`
}

var neighborType = map[string]attr.Type{"switch": types.StringType, "port": types.StringType}

var portType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"pxe_enabled": types.BoolType, "physical_network": types.StringType, "local_link_connection": types.MapType{ElemType: types.StringType},
	"port_group": types.StringType, "name": types.StringType, "description": types.StringType, "is_smartnic": types.BoolType,
	"vendor": types.StringType, "category": types.StringType, "expect_neighbor": types.ObjectType{AttrTypes: neighborType},
	"extra_json": framework.JSONType{},
}}

func noPort() portModel {
	return portModel{LocalLinkConnection: types.MapNull(types.StringType), ExpectNeighbor: types.ObjectNull(neighborType)}
}

func portsSchema() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Network cards, by MAC address in lower case with colons.",
		Validators:          []validator.Map{mapvalidator.KeysAre(framework.MACAddress), mapvalidator.NoNullValues()},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"pxe_enabled": flag("Whether the machine may boot from this card. A network boot needs a port that may: see [Network " +
				"boot](../guides/network-boot.md). Default: `true`."),
			"physical_network": free("Physical network that the card is connected to. Default: that of its group.", 64),
			"local_link_connection": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Switch and port of the card: `switch_id` (in lower case), `port_id`, `switch_info`.",
				Validators:          []validator.Map{framework.LocalLink{}},
			},
			"port_group":  text("Key of its group in `port_groups`.", groupKeyRule),
			"name":        free("Name, such as `rack1-01-eno1`, unique among all ports in Ironic. Needs API 1.88.", 255),
			"description": free("Needs API 1.97.", 255),
			"is_smartnic": flag("Whether it is a smart NIC; `local_link_connection` then needs `hostname` and `port_id`. Default: " +
				"`false`. Needs API 1.53."),
			"vendor":   free("Manufacturer. Needs API 1.100.", 32),
			"category": free("Category, by which Ironic selects ports. Needs API 1.101.", 80),
			"expect_neighbor": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "Where the cable ends: see [Prove the cabling](../guides/cabling.md). Needs API 1.81.",
				Attributes: map[string]schema.Attribute{
					"switch": schema.StringAttribute{
						Required: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
						MarkdownDescription: "Name or chassis ID.",
					},
					"port": schema.StringAttribute{
						Required: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
						MarkdownDescription: "Such as `Ethernet1/17`.",
					},
				},
			},
			"extra_json": extraSchema("with its VLANs in `switchport`: see [Switch ports](../guides/switch-ports.md)."),
		}},
	}
}

// extraSchema describes the extra of a port or port group. It is JSON in text: maps cannot have elements of any type.
func extraSchema(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, CustomType: framework.JSONType{}, Validators: []validator.String{framework.JSONObjectText},
		PlanModifiers:       framework.KeepSpelling(),
		MarkdownDescription: "Your own data as a JSON object, such as `jsonencode({ slot = 1 })`, " + description,
	}
}

// strings returns the attributes of a port that are plain strings, by name, with the first API version that has them.
func (p *portModel) strings() map[string]portString {
	return map[string]portString{
		"physical_network": {&p.PhysicalNetwork, api.VersionPhysicalNetwork}, "name": {&p.Name, api.VersionPortName},
		"description": {&p.Description, api.VersionPortDescription}, "vendor": {&p.Vendor, api.VersionPortVendor},
		"category": {&p.Category, api.VersionPortCategory},
	}
}

type portString struct {
	value *types.String
	since api.Microversion
}

func (m *model) portFeatures(ctx context.Context) []framework.Feature {
	features := []framework.Feature{{Used: !m.PortGroups.IsNull(), Since: api.VersionPortGroups, Name: path.Root("port_groups")}}
	for key, group := range m.portGroups(ctx) {
		at := path.Root("port_groups").AtMapKey(key)
		features = append(features, framework.Feature{
			Used: !group.PhysicalNetwork.IsNull(), Since: api.VersionGroupNetwork,
			Name: at.AtName("physical_network"),
		},
			framework.Feature{Used: !group.Category.IsNull(), Since: api.VersionGroupCategory, Name: at.AtName("category")})
	}
	for mac, port := range m.ports(ctx) {
		at := path.Root("ports").AtMapKey(mac)
		features = append(features, framework.Feature{
			Used: !port.IsSmartNIC.IsNull(), Since: api.VersionSmartNIC,
			Name: at.AtName("is_smartnic"),
		},
			framework.Feature{Used: !port.ExpectNeighbor.IsNull(), Since: api.VersionInventory, Name: at.AtName("expect_neighbor")})
		for name, s := range port.strings() {
			features = append(features, framework.Feature{Used: !s.value.IsNull(), Since: s.since, Name: at.AtName(name)})
		}
	}
	return features
}

// ports returns the ports by MAC address; nil if they are null or unknown.
func (m *model) ports(ctx context.Context) map[string]portModel {
	return elementsOf[portModel](ctx, m.Ports)
}

func portsValue(ctx context.Context, ports map[string]portModel) types.Map {
	value, _ := types.MapValueFrom(ctx, portType, ports)
	return value
}

// planPorts plans the ports, and the attributes of ports that the configuration omits. state is nil for a new host.
func (m *model) planPorts(ctx context.Context, config, state *model, before managed) {
	had := map[string]portModel{}
	if state != nil {
		had = state.ports(ctx)
	}
	applied, groups := config.cabledBefore(before), config.groupKeys(ctx)
	defer m.inheritNetworks(ctx, config)
	switch {
	case state == nil && config.Ports.IsNull(), config.Ports.IsNull() && before.has("/ports"):
		m.Ports = types.MapNull(portType)
	case config.Ports.IsNull():
		for mac, port := range had {
			if applied.Leaves(mac, port.PortGroup.ValueString(), groups) {
				port.PortGroup = types.StringNull()
				had[mac] = port
			}
		}
		m.Ports = state.Ports
		if had != nil {
			m.Ports = portsValue(ctx, had)
		}
	}
	wanted := config.ports(ctx)
	if wanted == nil {
		return
	}
	for mac, port := range wanted {
		old, exists := had[mac]
		if !exists {
			old = noPort()
			old.PXEEnabled = types.BoolUnknown()
		}
		if port.PortGroup.IsNull() && !applied.Leaves(mac, old.PortGroup.ValueString(), groups) {
			port.PortGroup = old.PortGroup
		}
		port.keepOmitted(&old)
		if port.Extra.IsNull() && !before.has("/port_extra/"+mac) {
			port.Extra = old.Extra
		}
		wanted[mac] = port
	}
	m.Ports = portsValue(ctx, wanted)
}

// inheritNetworks gives planned ports the physical network of their planned group, unless the configuration names one for them.
func (m *model) inheritNetworks(ctx context.Context, config *model) {
	asked, askedOf, groups, planned := config.ports(ctx), config.portGroups(ctx), m.portGroups(ctx), m.ports(ctx)
	changed := false
	for mac, port := range planned {
		if port.PortGroup.IsNull() || !asked[mac].PhysicalNetwork.IsNull() {
			continue
		}
		key := port.PortGroup.ValueString()
		group, ours := askedOf[key]
		switch {
		case port.PortGroup.IsUnknown(), m.PortGroups.IsUnknown(), group.PhysicalNetwork.IsUnknown():
			port.PhysicalNetwork = types.StringUnknown()
		case ours && framework.IsSet(groups[key].PhysicalNetwork): // the apply changes no other groups
			port.PhysicalNetwork = groups[key].PhysicalNetwork
		default:
			continue
		}
		planned[mac], changed = port, true
	}
	if changed {
		m.Ports = portsValue(ctx, planned)
	}
}

// keepOmitted gives a port the values that it had before, for attributes that are null.
func (p *portModel) keepOmitted(old *portModel) {
	if p.PXEEnabled.IsNull() {
		p.PXEEnabled = old.PXEEnabled
	}
	if p.IsSmartNIC.IsNull() {
		p.IsSmartNIC = old.IsSmartNIC
	}
	if p.LocalLinkConnection.IsNull() {
		p.LocalLinkConnection = old.LocalLinkConnection
	}
	before := old.strings()
	for name, s := range p.strings() {
		if s.value.IsNull() {
			*s.value = *before[name].value
		}
	}
}

// fromPorts copies Ironic's ports into the model; see fromNode.
func (m *model) fromPorts(ctx context.Context, seen sight, all bool) {
	known := m.ports(ctx)
	if m.Ports.IsUnknown() || (known == nil && !all) {
		m.Ports = types.MapNull(portType)
		return
	}
	now := map[string]portModel{}
	for mac, port := range seen.Ports {
		old, ours := known[mac]
		if !ours && !all {
			continue
		}
		now[mac] = portFrom(port, seen.GroupOf(port), old, all)
	}
	if all && len(now) == 0 {
		m.Ports = types.MapNull(portType)
		return
	}
	m.Ports = portsValue(ctx, now)
}

// portFrom returns a port with Ironic's values; of extra, only the keys that the old one has already, unless everything is true.
func portFrom(port ironic.Port, group string, old portModel, everything bool) portModel {
	p := portModel{
		PXEEnabled: types.BoolValue(port.PXEEnabled), PhysicalNetwork: framework.OrNull(port.PhysicalNetwork),
		LocalLinkConnection: framework.WholeMap(old.LocalLinkConnection, framework.Scalars(port.LocalLinkConnection)),
		PortGroup:           framework.OrNull(group),
		Name:                framework.OrNull(port.Name), Description: framework.OrNull(port.Description),
		IsSmartNIC: framework.QuietFlag(old.IsSmartNIC, port.IsSmartNIC),
		Vendor:     framework.OrNull(port.Vendor), Category: framework.OrNull(port.Category), ExpectNeighbor: old.ExpectNeighbor,
	}
	if p.ExpectNeighbor.IsNull() {
		p.ExpectNeighbor = types.ObjectNull(neighborType) // of a port that the state does not have
	}
	p.Extra = extraFrom(port.Extra, old.Extra, everything)
	return p
}

// extraFrom returns what Ironic has in extra: of the keys that the old one has, unless everything is true.
func extraFrom(has map[string]any, old framework.JSON, everything bool) framework.JSON {
	switch {
	case everything && len(has) > 0:
		return framework.JSONText(has)
	case everything, !framework.IsSet(old):
		return framework.JSONNull()
	}
	return framework.RefreshKeys(old, has)
}

// setKeys returns the keys of an extra that a configuration sets, with their values and all digits of numbers. Null is the same as no key.
func setKeys(extra framework.JSON) (keys map[string]any) {
	if framework.IsSet(extra) {
		_ = document.Decode([]byte(extra.ValueString()), &keys) // the schema says that it is an object
	}
	maps.DeleteFunc(keys, func(_ string, value any) bool { return value == nil })
	return keys
}

// keepPorts restores the known planned attributes of ports, as keep does for other attributes.
func keepPorts(ctx context.Context, m, wanted *model) types.Map {
	planned := wanted.ports(ctx)
	if planned == nil {
		return m.Ports
	}
	actual := m.ports(ctx)
	for mac, port := range planned {
		now, exists := actual[mac]
		if !exists {
			now = noPort()
		}
		framework.Keep(&now.PXEEnabled, port.PXEEnabled)
		framework.Keep(&now.IsSmartNIC, port.IsSmartNIC)
		framework.Keep(&now.LocalLinkConnection, port.LocalLinkConnection)
		framework.Keep(&now.PortGroup, port.PortGroup)
		framework.Keep(&now.Extra, port.Extra)
		now.ExpectNeighbor = port.ExpectNeighbor
		texts := port.strings()
		for name, s := range now.strings() {
			framework.Keep(s.value, *texts[name].value)
		}
		planned[mac] = now
	}
	return portsValue(ctx, planned)
}

// spec returns what the configuration says of a port, except its group.
func (p *portModel) spec(mac string) ironic.PortSpec {
	return ironic.PortSpec{
		Address: mac, PXEEnabled: p.PXEEnabled.ValueBoolPointer(), PhysicalNetwork: p.PhysicalNetwork.ValueString(),
		IsSmartNIC: p.IsSmartNIC.ValueBoolPointer(),
		Name:       p.Name.ValueString(), Description: p.Description.ValueString(), Vendor: p.Vendor.ValueString(),
		Category:            p.Category.ValueString(),
		LocalLinkConnection: objectOf(p.LocalLinkConnection), Extra: setKeys(p.Extra),
	}
}

func (p *portModel) wish(ctx context.Context) hosts.Port {
	return hosts.Port{
		Name: framework.TextOf[string](p.Name), Group: framework.TextOf[string](p.PortGroup),
		Network: framework.TextOf[string](p.PhysicalNetwork), PXE: framework.FlagOf(p.PXEEnabled),
		Link: framework.MapOf(ctx, p.LocalLinkConnection), Extra: framework.DocumentOf(p.Extra), End: p.end(),
	}
}

// end returns where the cable must end.
func (p *portModel) end() decide.Value[cabling.End] {
	at, _ := p.ExpectNeighbor.Attributes()["switch"].(types.String)
	port, _ := p.ExpectNeighbor.Attributes()["port"].(types.String)
	known := framework.IsSet(at) && framework.IsSet(port)
	return decide.Value[cabling.End]{V: cabling.End{Switch: at.ValueString(), Port: port.ValueString()}, Set: known, Unknown: !known &&
		!p.ExpectNeighbor.IsNull()}
}

func (m *model) portWishes(ctx context.Context) map[string]hosts.Port {
	wishes := map[string]hosts.Port{}
	for mac, port := range m.ports(ctx) {
		wishes[mac] = port.wish(ctx)
	}
	return wishes
}

// cablingWish returns what a configuration says of ports and port groups. plan is nil while nothing is planned.
func (m *model) cablingWish(ctx context.Context, plan *model) hosts.PortsWish {
	w := hosts.PortsWish{
		Label: m.describe(), Ports: m.portWishes(ctx), Groups: map[string]hosts.PortGroup{}, OpenGroups: m.PortGroups.IsUnknown(),
		Inspects: !framework.IsFalse(m.Inspect) && !m.Inspect.IsNull() || !m.InspectTriggers.IsNull(),
	}
	for key, group := range m.portGroups(ctx) {
		w.Groups[key] = group.wish()
	}
	if plan != nil {
		w.Planned = plan.portWishes(ctx)
	}
	return w
}

// cablingSeen returns what a state and private state have of ports and port groups. The state is nil for a new host.
func (m *model) cablingSeen(ctx context.Context, kept private) hosts.PortsSeen {
	seen := hosts.PortsSeen{Ports: map[string]hosts.Port{}, Groups: map[string]hosts.PortGroup{}}
	if m == nil {
		return seen
	}
	seen.Heard, seen.Since, seen.Ends = kept.Cabling.Heard, kept.Cabling.Since, m.ends(ctx)
	seen.State, seen.Ports = ironic.State(m.ProvisionState.ValueString()), m.portWishes(ctx)
	for key, group := range m.portGroups(ctx) {
		seen.Groups[key] = group.wish()
	}
	return seen
}

func (m *model) ends(ctx context.Context) map[string]cabling.End {
	return hosts.PortsWish{Ports: m.portWishes(ctx)}.Ends()
}

// cablingOf returns the cabling of a configuration. before is what was managed until now.
func (m *model) cablingOf(ctx context.Context, before managed) hosts.WantedCables {
	ports, members, groups := map[string]ironic.PortSpec{}, map[string]string{}, map[string]ironic.PortGroupSpec{}
	for mac, port := range m.ports(ctx) {
		ports[mac], members[mac] = port.spec(mac), port.PortGroup.ValueString()
	}
	for key, group := range m.portGroups(ctx) {
		groups[key] = group.spec()
	}
	return m.cabledBefore(before).Wanted(ports, members, groups)
}

// cabledBefore returns what the configuration before has set of ports and port groups. While the groups of this one are not known, none is
// lost.
func (m *model) cabledBefore(before managed) hosts.AppliedPorts {
	applied := hosts.AppliedPorts{
		Ports: before.below("/ports"), Members: before.below("/members"), Extra: map[string][]string{},
		Groups: before.below("/port_groups"), GroupExtra: map[string][]string{},
	}
	for _, mac := range applied.Ports {
		applied.Extra[mac] = before.below("/port_extra/" + mac)
	}
	for _, key := range applied.Groups {
		applied.GroupExtra[key] = before.below("/group_extra/" + key)
	}
	if m.PortGroups.IsUnknown() {
		applied.Groups = nil
	}
	return applied
}

// addParts adds the traits, ports and port groups of the prior state to the planned ones. The next refresh removes those that are gone.
func (m *model) addParts(ctx context.Context, state *model) {
	if before := framework.StringSet(state.Traits); len(before) > 0 {
		all := append(framework.StringSet(m.Traits), before...)
		slices.Sort(all)
		m.Traits = framework.SetValue(slices.Compact(all))
	}
	if before := state.ports(ctx); len(before) > 0 {
		maps.Copy(before, m.ports(ctx))
		m.Ports = portsValue(ctx, before)
	}
	if before := state.portGroups(ctx); len(before) > 0 {
		maps.Copy(before, m.portGroups(ctx))
		m.PortGroups = groupsValue(ctx, before)
	}
}
