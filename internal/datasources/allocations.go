package datasources

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

var _ datasource.DataSourceWithConfigure = (*allocations)(nil)

// NewAllocations returns the data source metal_allocations.
func NewAllocations() datasource.DataSource { return &allocations{source{name: "metal_allocations"}} }

type allocations struct{ source }

type allocationsModel struct {
	State         types.String `tfsdk:"state"`
	ResourceClass types.String `tfsdk:"resource_class"`
	Node          types.String `tfsdk:"node"`
	Owner         types.String `tfsdk:"owner"`
	IDs           types.List   `tfsdk:"ids"`
	Allocations   types.List   `tfsdk:"allocations"`
}

func (a *allocations) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	choose := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: "Only allocations " + description,
			Validators: append(validators, stringvalidator.LengthAtLeast(1)),
		}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the allocations of Ironic that match all given filters, or all allocations, whichever client created " +
			"them. An empty result is allowed. Needs API 1.52.",
		Attributes: map[string]schema.Attribute{
			"state": choose("in this state: `allocating`, `active` or `error`.",
				stringvalidator.OneOf(string(ironic.AllocationAllocating), string(ironic.AllocationActive),
					string(ironic.AllocationError))),
			"resource_class": choose("of this resource class."),
			"node":           choose("of the node with this name or UUID: one, or none."),
			"owner":          choose("of this owner. Needs API 1.60."),
			"ids":            list("UUIDs of the allocations, in the order of `allocations`."),
			"allocations": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The allocations, sorted by name, then UUID.",
				NestedObject: schema.NestedAttributeObject{Attributes: allocationAttributes()},
			},
		},
	}
}

// Read lists the allocations, and the names of their nodes.
func (a *allocations) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m allocationsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	all, err := a.list(ctx, &m)
	var names map[string]string
	if err == nil {
		names, err = a.nodeNames(ctx, all)
	}
	if err != nil {
		report(&resp.Diagnostics, "list allocations", err)
		return
	}
	slices.SortFunc(all, func(a, b ironic.Allocation) int { return strings.Compare(a.Name+"\x00"+a.UUID, b.Name+"\x00"+b.UUID) })
	ids, values := []string{}, []attr.Value{}
	kinds := typesOf(allocationAttributes())
	for i := range all {
		ids = append(ids, all[i].UUID)
		values = append(values, types.ObjectValueMust(kinds, allocationValues(&all[i], names[all[i].NodeUUID])))
	}
	m.IDs = stringsValue(ids)
	m.Allocations = types.ListValueMust(types.ObjectType{AttrTypes: kinds}, values)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (a *allocations) list(ctx context.Context, m *allocationsModel) ([]ironic.Allocation, error) {
	if err := a.Site.Ironic.Requires(ctx, api.VersionAllocations, "an allocation"); err != nil {
		return nil, err
	}
	if !m.Owner.IsNull() {
		if err := a.Site.Ironic.Requires(ctx, api.VersionAllocationOwner, "owner"); err != nil {
			return nil, err
		}
	}
	query := url.Values{}
	for key, value := range map[string]types.String{"state": m.State, "resource_class": m.ResourceClass, "node": m.Node, "owner": m.Owner} {
		if !value.IsNull() {
			query.Set(key, value.ValueString())
		}
	}
	return a.Site.Ironic.AllocationsForConfiguration(ctx, query)
}

// nodeNames returns the names of the reserved nodes by UUID: one by a single request, more from a list.
func (a *allocations) nodeNames(ctx context.Context, all []ironic.Allocation) (map[string]string, error) {
	names := map[string]string{}
	reserved := slices.DeleteFunc(slices.Clone(all), func(a ironic.Allocation) bool { return a.NodeUUID == "" })
	switch len(reserved) {
	case 0:
		return names, nil
	case 1:
		node, err := a.Site.Ironic.Node(ctx, reserved[0].NodeUUID)
		if api.IsNotFound(err) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names[node.UUID] = node.Name
		return names, nil
	}
	nodes, err := a.Site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, []string{"uuid", "name"})
	for _, node := range nodes {
		names[node.UUID] = node.Name
	}
	return names, err
}
