package datasources

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ datasource.DataSourceWithConfigure = (*hosts)(nil)

// NewHosts returns the data source metal_hosts.
func NewHosts() datasource.DataSource { return &hosts{source{name: "metal_hosts"}} }

type hosts struct{ source }

type hostsModel struct {
	framework.NodeFilter
	Associated types.Bool `tfsdk:"associated"`
	IDs        types.List `tfsdk:"ids"`
	Hosts      types.List `tfsdk:"hosts"`
}

func (h *hosts) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"name_regex": schema.StringAttribute{
			Optional: true, MarkdownDescription: framework.NameRegexDescription("hosts"),
			Validators: []validator.String{framework.RegularExpression},
		},
		"associated": schema.BoolAttribute{Optional: true, MarkdownDescription: framework.OnlyIf("hosts", framework.IfReserved)},
		"ids":        list("UUIDs of the nodes, in the order of `hosts`."),
		"hosts": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The hosts, sorted by name, then UUID.",
			NestedObject: schema.NestedAttributeObject{Attributes: nodeAttributes()},
		},
	}
	for name, description := range framework.NodeFilterTexts("hosts") {
		attributes[name] = schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	for name, description := range framework.NodeFilterFlags("hosts") {
		attributes[name] = schema.BoolAttribute{Optional: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the nodes of Ironic that match all given filters, or all nodes. An empty result is allowed.",
		Attributes:          attributes,
	}
}

func (h *hosts) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m hostsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	filter := m.Filter()
	filter.Associated = m.Associated.ValueBoolPointer()
	nodes, err := h.Site.Ironic.NodesForConfiguration(ctx, filter)
	if err != nil {
		report(&resp.Diagnostics, "list hosts", err)
		return
	}
	slices.SortFunc(nodes, func(a, b ironic.Node) int { return strings.Compare(a.Name+"\x00"+a.UUID, b.Name+"\x00"+b.UUID) })
	matches := framework.NamePattern(m.NameRegex)
	ids, values := []string{}, []attr.Value{}
	kinds := typesOf(nodeAttributes())
	for i := range nodes {
		if matches.MatchString(nodes[i].Name) {
			learnFailure(ctx, h.Site.Ironic, &nodes[i])
			ids = append(ids, nodes[i].UUID)
			values = append(values, types.ObjectValueMust(kinds, nodeValues(&nodes[i])))
		}
	}
	m.IDs = stringsValue(ids)
	m.Hosts = types.ListValueMust(types.ObjectType{AttrTypes: kinds}, values)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
