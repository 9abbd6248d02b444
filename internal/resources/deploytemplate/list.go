package deploytemplate

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

var _ list.ListResourceWithConfigure = (*deployTemplate)(nil)

// NewList returns the list resource metal_deploy_template.
func NewList() list.ListResource { return &deployTemplate{} }

// ListResourceConfigSchema describes the filter.
func (r *deployTemplate) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the deploy templates of Ironic, or those with a name. Needs API 1.55.",
		Attributes:          map[string]schema.Attribute{"name_regex": framework.NameRegexAttribute("deploy templates")},
	}
}

// List streams the deploy templates.
func (r *deployTemplate) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	framework.ListedIn(ctx, &r.WithClient, ironic.DeployTemplates, "deploy template", req, stream, label, fill)
}

// label returns the UUID and the name of a deploy template.
func label(found *ironic.Procedure) (id, name string) { return found.UUID, found.Name }

// fill sets a listed deploy template as an import does.
func fill(ctx context.Context, found *ironic.Procedure, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, found.UUID, &m)
	if diags.HasError() {
		return diags
	}
	m.Name = types.StringValue(found.Name)
	m.Steps = framework.RefreshSteps(ctx, framework.ByPriority, m.Steps, found.Steps)
	return append(diags, to.Set(ctx, &m)...)
}
