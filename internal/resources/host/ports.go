package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type portModel struct {
	PXEEnabled          types.Bool   `tfsdk:"pxe_enabled"`
	PhysicalNetwork     types.String `tfsdk:"physical_network"`
	LocalLinkConnection types.Map    `tfsdk:"local_link_connection"`
}

var portType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"pxe_enabled": types.BoolType, "physical_network": types.StringType, "local_link_connection": types.MapType{ElemType: types.StringType},
}}

func portsSchema() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Network cards, by MAC address in lower case with colons. Ironic refuses to change an existing port while the node is `available` or deployed, unless the node is in maintenance.",
		Validators:          []validator.Map{mapvalidator.KeysAre(framework.MACAddress)},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"pxe_enabled":      schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: "Whether the machine may boot from this card. Default: `true`."},
			"physical_network": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Physical network that the card is connected to."},
			"local_link_connection": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Switch and port that the card is connected to: `switch_id`, `port_id`, `switch_info`.",
			},
		}},
	}
}

// ports returns the ports by MAC address; nil if they are null or unknown.
func (m *model) ports(ctx context.Context) map[string]portModel {
	if !framework.IsSet(m.Ports) {
		return nil
	}
	ports := map[string]portModel{}
	if m.Ports.ElementsAs(ctx, &ports, false).HasError() {
		return nil
	}
	return ports
}

func portsValue(ctx context.Context, ports map[string]portModel) types.Map {
	value, _ := types.MapValueFrom(ctx, portType, ports)
	return value
}

// planPorts plans the ports, and the attributes of ports that the configuration omits. state is nil for a new host.
func (m *model) planPorts(ctx context.Context, config, state *model, before managed) {
	var had map[string]portModel
	switch {
	case state == nil && config.Ports.IsNull(), config.Ports.IsNull() && before.has("/ports"):
		m.Ports = types.MapNull(portType)
	case config.Ports.IsNull():
		m.Ports = state.Ports
	case state != nil:
		had = state.ports(ctx)
	}
	wanted := config.ports(ctx)
	if wanted == nil {
		return
	}
	for mac, port := range wanted {
		old, exists := had[mac]
		if port.PXEEnabled.IsNull() {
			port.PXEEnabled = types.BoolUnknown()
			if exists {
				port.PXEEnabled = old.PXEEnabled
			}
		}
		if port.PhysicalNetwork.IsNull() && exists {
			port.PhysicalNetwork = old.PhysicalNetwork
		}
		if port.LocalLinkConnection.IsNull() && exists {
			port.LocalLinkConnection = old.LocalLinkConnection
		}
		wanted[mac] = port
	}
	m.Ports = portsValue(ctx, wanted)
}

func (m *model) fromPorts(ctx context.Context, ports map[string]ironic.Port, all bool) {
	known := m.ports(ctx)
	if m.Ports.IsUnknown() || (known == nil && !all) {
		m.Ports = types.MapNull(portType)
		return
	}
	now := map[string]portModel{}
	for mac, port := range ports {
		if _, ours := known[mac]; !ours && !all {
			continue
		}
		now[mac] = portModel{
			PXEEnabled: types.BoolValue(port.PXEEnabled), PhysicalNetwork: framework.OrNull(port.PhysicalNetwork),
			LocalLinkConnection: framework.MapValue(framework.Scalars(port.LocalLinkConnection)),
		}
	}
	if all && len(now) == 0 {
		m.Ports = types.MapNull(portType)
		return
	}
	m.Ports = portsValue(ctx, now)
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
			now = portModel{LocalLinkConnection: types.MapNull(types.StringType)}
		}
		framework.Keep(&now.PXEEnabled, port.PXEEnabled)
		framework.Keep(&now.PhysicalNetwork, port.PhysicalNetwork)
		framework.Keep(&now.LocalLinkConnection, port.LocalLinkConnection)
		planned[mac] = now
	}
	return portsValue(ctx, planned)
}

func (m portModel) spec(mac string) ironic.PortSpec {
	spec := ironic.PortSpec{Address: mac, PXEEnabled: m.PXEEnabled.ValueBoolPointer(), PhysicalNetwork: m.PhysicalNetwork.ValueString()}
	if link := framework.StringMap(m.LocalLinkConnection); link != nil {
		spec.LocalLinkConnection = map[string]any{}
		for key, value := range link {
			spec.LocalLinkConnection[key] = value
		}
	}
	return spec
}
