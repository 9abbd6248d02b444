package allocationgroup

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

var _ list.ListResourceWithConfigure = (*group)(nil)

// NewList returns the list resource metal_allocation_group.
func NewList() list.ListResource { return newGroup() }

type filter struct {
	NameRegex     types.String `tfsdk:"name_regex"`
	ResourceClass types.String `tfsdk:"resource_class"`
}

func (r *group) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the groups: each series of allocations with the names `NAME-0`, `NAME-1` and so on.",
		Attributes: map[string]schema.Attribute{
			"name_regex": framework.NameRegexAttribute("groups"),
			"resource_class": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only groups whose first member has this resource class.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

// List reads all allocations, because only their names say which of them are a group.
func (r *group) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var f filter
	if diags := req.Config.Get(ctx, &f); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	names := framework.NamePattern(f.NameRegex)
	stream.Results = framework.Listing[allocate.FoundGroup]{
		Doing:   "list groups of allocations",
		Objects: framework.AtOnce(func() ([]*allocate.FoundGroup, error) { return allocate.FindGroups(ctx, r.Site) }),
		Chosen: func(g *allocate.FoundGroup) bool {
			return names.MatchString(g.Name) && (f.ResourceClass.IsNull() || f.ResourceClass.ValueString() == g.First.ResourceClass)
		},
		Label: func(g *allocate.FoundGroup) (id, name string) { return g.First.UUID, g.Name },
		Fill:  r.fill,
	}.Results(ctx, req)
}

// fill sets a listed group, as an import and the refresh that follows it do.
func (r *group) fill(ctx context.Context, found *allocate.FoundGroup, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, found.First.UUID, &m)
	if diags.HasError() {
		return diags
	}
	m.importGroup(found)
	g, byKey := m.group(ctx)
	_, err := allocate.RefreshGroup(ctx, r.Site, g)
	if err == nil {
		err = r.show(ctx, &m, g, byKey)
	}
	framework.Report(&diags, "read the "+m.label(ctx), err)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
