package datasources

import (
	"cmp"
	"context"

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
func NewAllocation() datasource.DataSource { return &allocation{source{name: "metal_allocation"}} }

type allocation struct{ source }

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

func allocationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":              text("UUID of the allocation."),
		"name":            text("Name of the allocation."),
		"resource_class":  text("Class that the node must have."),
		"traits":          keys("Traits that the node must have."),
		"candidate_nodes": keys("UUIDs of the nodes from which Ironic could select; empty for all nodes."),
		"owner":           text("Project that must be the owner or lessee of the node."),
		"extra_json":      jsonAttribute("Data that clients stored with the allocation, as JSON. Notes of this provider are left out."),
		"node_id":         text("UUID of the reserved node; null without one."), "node_name": text("Name of the reserved node."),
		"state":      text("`allocating`, `active` or `error`."),
		"last_error": text("Why Ironic found no node; null without an error."), "created_at": text("Time of creation (RFC 3339)."),
	}
}

func allocationValues(found *ironic.Allocation, nodeName string) map[string]attr.Value {
	return map[string]attr.Value{
		"id": types.StringValue(found.UUID), "name": orNull(found.Name), "resource_class": orNull(found.ResourceClass),
		"traits": setValue(found.Traits), "candidate_nodes": setValue(found.CandidateNodes), "owner": orNull(found.Owner),
		"extra_json": jsonText(found.Extra), "node_id": orNull(found.NodeUUID), "node_name": orNull(nodeName),
		"state": types.StringValue(string(found.State)), "last_error": orNull(found.LastError), "created_at": orNull(found.CreatedAt),
	}
}

func (a *allocation) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(path.MatchRoot("id"), path.MatchRoot("name"),
		path.MatchRoot("node"))}
}

func (a *allocation) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config types.Object
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	given := func(name string) string {
		value, _ := config.Attributes()[name].(types.String)
		return value.ValueString()
	}
	ref := cmp.Or(given("id"), given("name"))
	doing := "find allocation " + ref
	if ref == "" {
		doing = "find the allocation of node " + given("node")
	}
	err := a.Site.Ironic.Requires(ctx, api.VersionAllocations, "an allocation")
	var found *ironic.Allocation
	switch {
	case err != nil:
	case ref != "":
		found, err = a.Site.Ironic.Allocation(ctx, ref)
	default:
		found, err = a.Site.Ironic.AllocationOf(ctx, given("node"))
	}
	if err != nil {
		report(&resp.Diagnostics, doing, err)
		return
	}
	nodeName := ""
	if found.NodeUUID != "" {
		node, err := a.Site.Ironic.Node(ctx, found.NodeUUID)
		if err != nil {
			report(&resp.Diagnostics, "read node "+found.NodeUUID+" of allocation "+ref, err)
			return
		}
		nodeName = node.Name
	}
	values := allocationValues(found, nodeName)
	values["node"] = config.Attributes()["node"]
	resp.Diagnostics.Append(resp.State.Set(ctx, types.ObjectValueMust(config.AttributeTypes(ctx), values))...)
}
