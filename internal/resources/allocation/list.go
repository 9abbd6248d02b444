package allocation

import (
	"context"
	"net/url"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

var _ list.ListResourceWithConfigure = (*allocation)(nil)

// NewList returns the list resource metal_allocation.
func NewList() list.ListResource { return newAllocation() }

type filter struct {
	NameRegex     types.String `tfsdk:"name_regex"`
	State         types.String `tfsdk:"state"`
	ResourceClass types.String `tfsdk:"resource_class"`
	Node          types.String `tfsdk:"node"`
	Owner         types.String `tfsdk:"owner"`
}

func (a *allocation) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	choose := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: "Only allocations " + description,
			Validators: append(validators, stringvalidator.LengthAtLeast(1)),
		}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the allocations of Ironic that match all given filters, or all allocations, whichever " +
			"client created them.",
		Attributes: map[string]schema.Attribute{
			"name_regex": framework.NameRegexAttribute("allocations"),
			"state": choose("in this state: `allocating`, `active` or `error`.",
				stringvalidator.OneOf(string(ironic.AllocationAllocating), string(ironic.AllocationActive),
					string(ironic.AllocationError))),
			"resource_class": choose("of this resource class."),
			"node":           choose("of the node with this name or UUID: one, or none."),
			"owner":          choose("of this owner. Needs API 1.60."),
		},
	}
}

func (a *allocation) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var f filter
	diags := req.Config.Get(ctx, &f)
	if !diags.HasError() {
		a.Requires(ctx, &diags, framework.Feature{Used: !f.Owner.IsNull(), Since: api.VersionAllocationOwner, Name: path.Root("owner")})
	}
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	query, names, limit := url.Values{}, framework.NamePattern(f.NameRegex), req.Limit
	for key, value := range map[string]types.String{"state": f.State, "resource_class": f.ResourceClass, "node": f.Node, "owner": f.Owner} {
		if !value.IsNull() {
			query.Set(key, value.ValueString())
		}
	}
	if !f.NameRegex.IsNull() {
		limit = 0 // Ironic cannot count the allocations with such names
	}
	stream.Results = framework.Listing[ironic.Allocation]{
		Doing: "list allocations", Objects: a.Site.Ironic.StreamAllocations(ctx, query, limit),
		Chosen: func(found *ironic.Allocation) bool { return names.MatchString(found.Name) },
		Label:  func(found *ironic.Allocation) (id, name string) { return found.UUID, found.Name },
		Fill:   a.fill,
	}.Results(ctx, req)
}

// fill sets a listed allocation. The name of its node comes from the list that refreshes share.
func (a *allocation) fill(ctx context.Context, found *ironic.Allocation, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, found.UUID, &m)
	if diags.HasError() {
		return diags
	}
	nodeName := ""
	if found.NodeUUID != "" {
		node, err := a.Site.Ironic.NodeForRefresh(ctx, found.NodeUUID)
		switch {
		case err == nil:
			nodeName = node.Name
		case !api.IsNotFound(err):
			framework.Report(&diags, "read the node of allocation "+found.UUID, err)
			return diags
		}
	}
	m.importAll(ctx, found)
	m.fromAllocation(found, nodeName)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
