package runbook

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ list.ListResourceWithConfigure = (*runbook)(nil)

// NewList returns the list resource metal_runbook.
func NewList() list.ListResource { return &runbook{} }

// ListResourceConfigSchema describes the filter.
func (r *runbook) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the runbooks of Ironic that the user may see, or those with a name. Needs API 1.92.",
		Attributes:          map[string]schema.Attribute{"name_regex": framework.NameRegexAttribute("runbooks")},
	}
}

// List streams the runbooks.
func (r *runbook) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	framework.ListedIn(ctx, &r.WithClient, ironic.Runbooks, "runbook", req, stream, label, fill)
}

// label returns the UUID and the name of a runbook.
func label(found *ironic.Procedure) (id, name string) { return found.UUID, found.Name }

// fill sets a listed runbook as an import does.
func fill(ctx context.Context, found *ironic.Procedure, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, found.UUID, &m)
	if diags.HasError() {
		return diags
	}
	m.refresh(found)
	m.Steps = framework.RefreshSteps(ctx, framework.ByPosition, m.Steps, found.Steps)
	return append(diags, to.Set(ctx, &m)...)
}
