package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ list.ListResourceWithConfigure = (*host)(nil)

// NewList returns the list resource metal_host.
func NewList() list.ListResource { return &host{} }

type filter struct {
	framework.NodeFilter
	Associated types.Bool `tfsdk:"associated"`
}

// ListResourceConfigSchema describes the filters.
func (h *host) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the nodes of Ironic that match all given filters, or all nodes.",
		Attributes: framework.NodeFilterAttributes("hosts", map[string]schema.Attribute{
			"associated": schema.BoolAttribute{Optional: true, MarkdownDescription: framework.OnlyIf("hosts", framework.IfReserved)},
		}),
	}
}

// List streams the nodes. Without their resources, it asks Ironic for their names only.
func (h *host) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var f filter
	if diags := req.Config.Get(ctx, &f); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	asked, names, limit := f.Filter(), framework.NamePattern(f.NameRegex), req.Limit
	asked.Associated = f.Associated.ValueBoolPointer()
	if !f.NameRegex.IsNull() {
		limit = 0 // Ironic cannot count the hosts with such names
	}
	var fields []string
	if !req.IncludeResource {
		fields = []string{"uuid", "name"}
	}
	stream.Results = framework.Listing[ironic.Node]{
		Doing: "list hosts", Objects: h.Site.Ironic.StreamNodes(ctx, asked, limit, fields...),
		Chosen: func(n *ironic.Node) bool { return names.MatchString(n.Name) },
		Label:  func(n *ironic.Node) (id, name string) { return n.UUID, n.Name },
		Fill:   h.fill,
	}.Results(ctx, req)
}

// fill sets a listed host. Its ports come from the lists that refreshes share.
func (h *host) fill(ctx context.Context, node *ironic.Node, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, node.UUID, &m)
	if diags.HasError() {
		return diags
	}
	found, err := h.lookAt(ctx, &m, node)
	if err != nil {
		framework.Report(&diags, "read host "+ironic.NodeLabel(node), err)
		return diags
	}
	m.refresh(ctx, found)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
