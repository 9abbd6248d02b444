package discoveryimport

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
)

var _ list.ListResourceWithConfigure = (*discoveryImport)(nil)

// NewList returns the list resource metal_discovery_import.
func NewList() list.ListResource { return newDiscoveryImport() }

func (d *discoveryImport) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the discoveries that have named machines: each owner label that nodes of Ironic have.",
		Attributes:          map[string]schema.Attribute{"name_regex": framework.NameRegexAttribute("discoveries")},
	}
}

// List reads the marks on all nodes, because Ironic has nothing else of a discovery.
func (d *discoveryImport) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var nameRegex types.String
	if diags := req.Config.GetAttribute(ctx, path.Root("name_regex"), &nameRegex); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	names := framework.NamePattern(nameRegex)
	stream.Results = framework.Listing[string]{
		Doing: "list discoveries",
		Objects: framework.AtOnce(func() (all []*string, err error) {
			owners, err := found.Owners(ctx, d.Site)
			for i := range owners {
				all = append(all, &owners[i])
			}
			return all, err
		}),
		Chosen: func(name *string) bool { return names.MatchString(*name) },
		Label:  func(name *string) (string, string) { return *name, *name },
		Fill:   d.fill,
	}.Results(ctx, req)
}

// fill sets a listed discovery, as an import and the refresh that follows it do.
func (d *discoveryImport) fill(ctx context.Context, name *string, to *tfsdk.Resource) diag.Diagnostics {
	var m discoveryModel
	diags := framework.Listed(ctx, to, *name, &m)
	if diags.HasError() {
		return diags
	}
	m.Name = types.StringValue(*name)
	seen, err := d.survey(ctx, &m, nil)
	if err != nil {
		framework.Report(&diags, "list discovered machines", err)
		return diags
	}
	m.importHosts(seen)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
