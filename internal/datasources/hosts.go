package datasources

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ datasource.DataSourceWithConfigure = (*hosts)(nil)

// NewHosts returns the data source metal_hosts.
func NewHosts() datasource.DataSource { return &hosts{} }

type hosts struct{ withClient }

type hostsModel struct {
	NameRegex           types.String `tfsdk:"name_regex"`
	ProvisionState      types.String `tfsdk:"provision_state"`
	ResourceClass       types.String `tfsdk:"resource_class"`
	ConductorGroup      types.String `tfsdk:"conductor_group"`
	Owner               types.String `tfsdk:"owner"`
	Lessee              types.String `tfsdk:"lessee"`
	Project             types.String `tfsdk:"project"`
	Driver              types.String `tfsdk:"driver"`
	Fault               types.String `tfsdk:"fault"`
	Shard               types.String `tfsdk:"shard"`
	DescriptionContains types.String `tfsdk:"description_contains"`
	ChassisUUID         types.String `tfsdk:"chassis_uuid"`
	Maintenance         types.Bool   `tfsdk:"maintenance"`
	Associated          types.Bool   `tfsdk:"associated"`
	Retired             types.Bool   `tfsdk:"retired"`
	IDs                 types.List   `tfsdk:"ids"`
	Hosts               types.List   `tfsdk:"hosts"`
}

// Metadata names the data source.
func (h *hosts) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "metal_hosts"
}

// Schema describes the data source.
func (h *hosts) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	choose := func(description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: "Only hosts " + description}
	}
	only := func(description string) schema.Attribute {
		return schema.BoolAttribute{Optional: true, MarkdownDescription: "Only hosts that are " + description + " (`true`) or are not (`false`)."}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the nodes of Ironic that match all given filters, or all nodes. An empty result is allowed.",
		Attributes: map[string]schema.Attribute{
			"name_regex": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only hosts whose name matches this regular expression (RE2). It also matches a part of the name; use `^` and `$` for the whole name.", Validators: []validator.String{regularExpression{}},
			},
			"provision_state": choose("in this provision state, such as `available`."), "resource_class": choose("of this resource class."),
			"conductor_group": choose("of this conductor group."), "owner": choose("of this owner."), "lessee": choose("with this lessee. Needs API 1.65."),
			"project": choose("whose owner or lessee is this project. Needs API 1.65."), "driver": choose("with this driver."),
			"fault": choose("with this fault, such as `power failure`."), "shard": choose("of this shard. Needs API 1.82."),
			"description_contains": choose("whose description contains this text."), "chassis_uuid": choose("of the chassis with this UUID."),
			"maintenance": only("in maintenance"), "associated": only("reserved by an allocation or instance"), "retired": only("retired"),
			"ids":   schema.ListAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: "UUIDs of the nodes, in the order of `hosts`."},
			"hosts": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The hosts, sorted by name, then UUID.", NestedObject: schema.NestedAttributeObject{Attributes: nodeAttributes()}},
		},
	}
}

// Read lists the hosts.
func (h *hosts) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m hostsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	nodes, err := h.client.ListNodes(ctx, ironic.NodeFilter{
		ProvisionState: m.ProvisionState.ValueString(), ResourceClass: m.ResourceClass.ValueString(), ConductorGroup: m.ConductorGroup.ValueString(),
		Owner: m.Owner.ValueString(), Lessee: m.Lessee.ValueString(), Project: m.Project.ValueString(), Driver: m.Driver.ValueString(),
		Fault: m.Fault.ValueString(), Shard: m.Shard.ValueString(), DescriptionContains: m.DescriptionContains.ValueString(),
		ChassisUUID: m.ChassisUUID.ValueString(), Maintenance: m.Maintenance.ValueBoolPointer(), Associated: m.Associated.ValueBoolPointer(),
		Retired: m.Retired.ValueBoolPointer(),
	})
	if err != nil {
		report(&resp.Diagnostics, "list hosts", err)
		return
	}
	slices.SortFunc(nodes, func(a, b ironic.Node) int { return strings.Compare(a.Name+"\x00"+a.UUID, b.Name+"\x00"+b.UUID) })
	matches := regexp.MustCompile(m.NameRegex.ValueString())
	ids, values := []string{}, []attr.Value{}
	kinds := nodeTypes()
	for i := range nodes {
		if matches.MatchString(nodes[i].Name) {
			ids = append(ids, nodes[i].UUID)
			values = append(values, types.ObjectValueMust(kinds, nodeValues(&nodes[i])))
		}
	}
	m.IDs = stringsValue(ids)
	m.Hosts = types.ListValueMust(types.ObjectType{AttrTypes: kinds}, values)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// regularExpression accepts the regular expressions of package regexp.
type regularExpression struct{}

func (regularExpression) Description(context.Context) string { return "must be a regular expression" }

func (v regularExpression) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (regularExpression) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := regexp.Compile(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a regular expression", fmt.Sprintf("%q: %v.", req.ConfigValue.ValueString(), err))
	}
}
