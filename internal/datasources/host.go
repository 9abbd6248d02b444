package datasources

import (
	"context"
	"fmt"

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
func NewHost() datasource.DataSource { return &host{} }

type host struct{ withClient }

// lookups are the attributes by which a host can be found, with what FindNode calls each.
var lookups = []struct{ name, prefix string }{{"id", ""}, {"name", ""}, {"mac", ""}, {"bmc_address", "bmc:"}}

// Metadata names the data source.
func (h *host) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "metal_host"
}

// Schema describes the data source.
func (h *host) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := nodeAttributes()
	for _, name := range []string{"id", "name", "bmc_address", "instance_uuid"} {
		attribute, _ := attributes[name].(schema.StringAttribute)
		attribute.Optional = true
		attribute.MarkdownDescription += " Give one of `id`, `name`, `mac`, `bmc_address`, `instance_uuid` to look the host up."
		attributes[name] = attribute
	}
	attributes["mac"] = schema.StringAttribute{Optional: true, MarkdownDescription: "MAC address of one of its ports, to look the host up."}
	attributes["macs"] = schema.ListAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: "MAC addresses of its ports, sorted."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A machine that Ironic knows, whoever enrolled it. That there is none is an error.",
		Attributes:          attributes,
	}
}

// ConfigValidators demand one way to look the host up.
func (h *host) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(
		path.MatchRoot("id"), path.MatchRoot("name"), path.MatchRoot("mac"), path.MatchRoot("bmc_address"), path.MatchRoot("instance_uuid"))}
}

// Read looks the host up.
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
	ports, err := h.client.Ports(ctx, node.UUID)
	if err != nil {
		report(&resp.Diagnostics, "read the ports of host "+ironic.NodeLabel(node), err)
		return
	}
	values := nodeValues(node)
	values["mac"] = config.Attributes()["mac"]
	values["macs"] = stringsValue(ironic.Addresses(ports))
	// What the host was looked up by stays as it was written.
	for _, lookup := range lookups {
		if given := config.Attributes()[lookup.name]; !given.IsNull() {
			values[lookup.name] = given
		}
	}
	state, diags := types.ObjectValue(config.AttributeTypes(ctx), values)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// find looks a node up by whatever is given, and says by what.
func (h *host) find(ctx context.Context, given map[string]attr.Value) (node *ironic.Node, by string, err error) {
	for _, lookup := range lookups {
		if value, ok := given[lookup.name].(types.String); ok && !value.IsNull() {
			by = fmt.Sprintf("%s %q", lookup.name, value.ValueString())
			node, err = h.client.FindNode(ctx, lookup.prefix+value.ValueString())
			return node, by, err
		}
	}
	value, _ := given["instance_uuid"].(types.String)
	by = fmt.Sprintf("instance_uuid %q", value.ValueString())
	node, err = h.client.NodeOfInstance(ctx, value.ValueString())
	return node, by, err
}
