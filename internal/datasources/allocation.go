package datasources

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

var (
	_ datasource.DataSourceWithConfigure        = (*allocation)(nil)
	_ datasource.DataSourceWithConfigValidators = (*allocation)(nil)
)

// NewAllocation returns the data source metal_allocation.
func NewAllocation() datasource.DataSource { return &allocation{} }

type allocation struct{ withClient }

type allocationModel struct {
	Node           types.String         `tfsdk:"node"`
	ID             types.String         `tfsdk:"id"`
	Name           types.String         `tfsdk:"name"`
	ResourceClass  types.String         `tfsdk:"resource_class"`
	Traits         types.Set            `tfsdk:"traits"`
	CandidateNodes types.Set            `tfsdk:"candidate_nodes"`
	Owner          types.String         `tfsdk:"owner"`
	ExtraJSON      jsontypes.Normalized `tfsdk:"extra_json"`
	NodeID         types.String         `tfsdk:"node_id"`
	NodeName       types.String         `tfsdk:"node_name"`
	State          types.String         `tfsdk:"state"`
	LastError      types.String         `tfsdk:"last_error"`
	CreatedAt      types.String         `tfsdk:"created_at"`
}

// Metadata names the data source.
func (a *allocation) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "metal_allocation"
}

// Schema describes the data source.
func (a *allocation) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := allocationAttributes()
	attributes["id"] = schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Required unless `name` or `node` is " +
		"set. UUID of the allocation."}
	attributes["name"] = schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Required unless `id` or `node` is " +
		"set. Name of the allocation."}
	attributes["node"] = schema.StringAttribute{
		Optional: true, MarkdownDescription: "Required unless `id` or `name` is set. Name or UUID of the reserved node.",
		Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads one allocation, whichever client of Ironic created it. Fails if the allocation does not exist. " +
			"Needs API 1.52.",
		Attributes: attributes,
	}
}

// allocationAttributes returns the attributes of an allocation in the data sources.
func allocationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":             text("UUID of the allocation."),
		"name":           text("Name of the allocation."),
		"resource_class": text("Class that the node must have."),
		"traits": schema.SetAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "Traits that the node must have.",
		},
		"candidate_nodes": schema.SetAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "UUIDs of the nodes from which Ironic could select; empty for all nodes.",
		},
		"owner": text("Project that must be the owner or lessee of the node."),
		"extra_json": schema.StringAttribute{
			Computed: true, CustomType: jsontypes.NormalizedType{},
			MarkdownDescription: "Data that clients stored with the allocation, as JSON. Notes of this provider are left out.",
		},
		"node_id": text("UUID of the reserved node; null without one."), "node_name": text("Name of the reserved node."),
		"state":      text("`allocating`, `active` or `error`."),
		"last_error": text("Why Ironic found no node; null without an error."), "created_at": text("Time of creation (RFC 3339)."),
	}
}

// allocationTypes returns the types of allocationAttributes.
func allocationTypes() map[string]attr.Type {
	kinds := map[string]attr.Type{}
	for name, attribute := range allocationAttributes() {
		kinds[name] = attribute.GetType()
	}
	return kinds
}

// allocationValues returns an allocation's values for allocationAttributes.
func allocationValues(found *ironic.Allocation, nodeName string) map[string]attr.Value {
	return map[string]attr.Value{
		"id": types.StringValue(found.UUID), "name": orNull(found.Name), "resource_class": orNull(found.ResourceClass),
		"traits":          setValue(found.Traits),
		"candidate_nodes": setValue(found.CandidateNodes), "owner": orNull(found.Owner), "extra_json": jsonText(found.Extra),
		"node_id":   orNull(found.NodeUUID),
		"node_name": orNull(nodeName), "state": types.StringValue(string(found.State)), "last_error": orNull(found.LastError),
		"created_at": orNull(found.CreatedAt),
	}
}

// ConfigValidators require id, name or node.
func (a *allocation) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(path.MatchRoot("id"), path.MatchRoot("name"),
		path.MatchRoot("node"))}
}

// Read finds the allocation.
func (a *allocation) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m allocationModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ref := cmp.Or(m.ID.ValueString(), m.Name.ValueString())
	doing := "find allocation " + ref
	if ref == "" {
		doing = "find the allocation of node " + m.Node.ValueString()
	}
	err := a.client.Ironic.Requires(ctx, api.VersionAllocations, "an allocation")
	var found *ironic.Allocation
	switch {
	case err != nil:
	case ref != "":
		found, err = a.client.Ironic.Allocation(ctx, ref)
	default:
		found, err = a.client.Ironic.AllocationOf(ctx, m.Node.ValueString())
	}
	if err != nil {
		report(&resp.Diagnostics, doing, err)
		return
	}
	nodeName := ""
	if found.NodeUUID != "" {
		node, err := a.client.Ironic.Node(ctx, found.NodeUUID)
		if err != nil {
			report(&resp.Diagnostics, "read node "+found.NodeUUID+" of allocation "+ref, err)
			return
		}
		nodeName = node.Name
	}
	m = allocationModel{
		Node: m.Node, ID: types.StringValue(found.UUID), Name: orNull(found.Name), ResourceClass: orNull(found.ResourceClass),
		Traits: setValue(found.Traits), CandidateNodes: setValue(found.CandidateNodes), Owner: orNull(found.Owner),
		ExtraJSON: jsonText(found.Extra),
		NodeID:    orNull(found.NodeUUID), NodeName: orNull(nodeName), State: types.StringValue(string(found.State)),
		LastError: orNull(found.LastError), CreatedAt: orNull(found.CreatedAt),
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
