package datasources

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var (
	_ datasource.DataSourceWithConfigure        = (*host)(nil)
	_ datasource.DataSourceWithConfigValidators = (*host)(nil)
)

// NewHost returns the data source metal_host.
func NewHost() datasource.DataSource { return &host{source{name: "metal_host"}} }

type host struct{ source }

// lookups are the attributes that identify a host, with FindNode's prefix for each.
var lookups = []struct{ name, prefix string }{{"id", ""}, {"name", ""}, {"mac", ""}, {"bmc_address", "bmc:"}}

// requiredUnless begins the descriptions of the attributes that name a node. A configuration must set exactly one of them.
const requiredUnless = "Required unless you look up the node by another attribute. "

func (h *host) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := nodeAttributes()
	for _, name := range []string{"id", "name", "bmc_address", "instance_id"} {
		attribute, _ := attributes[name].(schema.StringAttribute)
		attribute.Optional = true
		attribute.MarkdownDescription = requiredUnless + attribute.MarkdownDescription
		attributes[name] = attribute
	}
	attributes["mac"] = schema.StringAttribute{Optional: true, MarkdownDescription: requiredUnless + "MAC address of a port of the node."}
	attributes["macs"] = list("MAC addresses of all ports of the node, sorted.")
	attributes["hardware_interfaces"] = schema.MapAttribute{
		ElementType: types.StringType, Computed: true, MarkdownDescription: "Hardware interfaces by kind, such as `deploy` or `boot`, " +
			"including the defaults of the driver.",
	}
	attributes["include"] = includeSchema()
	attributes["last_erasure"] = erasureSchema()
	for _, p := range parts {
		attributes[p.attribute] = p.schema()
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads one node of Ironic, whichever client enrolled it, and what Ironic knows about the machine. Fails if " +
			"the node does not exist.\n\n" +
			"Look up the node by exactly one of `id`, `name`, `mac`, `bmc_address` and `instance_id`.",
		Attributes: attributes,
	}
}

func (h *host) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(
		path.MatchRoot("id"), path.MatchRoot("name"), path.MatchRoot("mac"), path.MatchRoot("bmc_address"), path.MatchRoot("instance_id"))}
}

func (h *host) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config types.Object
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	node, by, err := h.find(ctx, config.Attributes())
	if err != nil {
		report(&resp.Diagnostics, "find the host with "+by, err)
		return
	}
	ports, err := h.Site.Ironic.Ports(ctx, node.UUID)
	if err != nil {
		report(&resp.Diagnostics, "read the ports of host "+ironic.NodeLabel(node), err)
		return
	}
	learnFailure(ctx, h.Site.Ironic, node)
	values := nodeValues(node)
	values["hardware_interfaces"] = interfacesValue(node)
	maps.Copy(values, h.readParts(ctx, node, config.Attributes()["include"], &resp.Diagnostics))
	values["include"] = config.Attributes()["include"]
	values["mac"] = config.Attributes()["mac"]
	values["macs"] = stringsValue(ironic.Addresses(ports))
	// The attribute that identifies the host keeps the configured spelling.
	for _, lookup := range lookups {
		if given := config.Attributes()[lookup.name]; !given.IsNull() {
			values[lookup.name] = given
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	state, diags := types.ObjectValue(config.AttributeTypes(ctx), values)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

func interfacesValue(node *ironic.Node) types.Map {
	values := map[string]attr.Value{}
	for kind, value := range ironic.InterfacesOf(node) {
		if value != "" {
			values[kind] = types.StringValue(value)
		}
	}
	return types.MapValueMust(types.StringType, values)
}

// find returns the node that one of the given attributes identifies. by is that attribute with its value, for messages.
func (h *host) find(ctx context.Context, given map[string]attr.Value) (node *ironic.Node, by string, err error) {
	for _, lookup := range lookups {
		if value, ok := given[lookup.name].(types.String); ok && !value.IsNull() {
			by = fmt.Sprintf("%s %q", lookup.name, value.ValueString())
			node, err = h.Site.Ironic.FindNode(ctx, lookup.prefix+value.ValueString())
			return node, by, err
		}
	}
	value, _ := given["instance_id"].(types.String)
	by = fmt.Sprintf("instance_id %q", value.ValueString())
	node, err = h.Site.Ironic.NodeOfInstance(ctx, value.ValueString())
	return node, by, err
}
