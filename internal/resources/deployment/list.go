package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/instance"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ list.ListResourceWithConfigure = (*deployment)(nil)

// NewList returns the list resource metal_deployment.
func NewList() list.ListResource { return &deployment{} }

// ListResourceConfigSchema describes the filters.
func (d *deployment) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the deployments: the nodes of Ironic that are reserved and run something, or may run something, and match all given filters.",
		Attributes:          framework.NodeFilterAttributes("deployments on nodes", nil),
	}
}

// List streams the deployed nodes. Without their resources, it asks Ironic for few fields.
func (d *deployment) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var f framework.NodeFilter
	if diags := req.Config.Get(ctx, &f); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	asked, names, reserved := f.Filter(), framework.NamePattern(f.NameRegex), true
	asked.Associated = &reserved
	var fields []string
	if !req.IncludeResource {
		fields = []string{"uuid", "name", "provision_state"}
	}
	const all = 0 // Ironic cannot count the deployed nodes
	stream.Results = framework.Listing[ironic.Node]{
		Doing: "list deployments", Objects: d.Site.Ironic.StreamNodes(ctx, asked, all, fields...),
		Chosen: func(n *ironic.Node) bool { return deploy.IsDeployed(n) && names.MatchString(n.Name) },
		Label:  func(n *ironic.Node) (id, name string) { return n.UUID, n.Name },
		Fill:   d.fill,
	}.Results(ctx, req)
}

// fill sets a listed deployment.
func (d *deployment) fill(ctx context.Context, node *ironic.Node, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, node.UUID, &m)
	if diags.HasError() {
		return diags
	}
	m.importNode(node)
	if instance.RunsInstance(node) && !d.ignoresContent(&m) {
		m.importImage(ctx, node)
	}
	m.readBoot(ctx, node, deploy.Wanted{}, true)
	m.volatile(node)
	m.Protected = types.BoolValue(node.Protected)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
