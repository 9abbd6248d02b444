package inspectionrule

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ list.ListResourceWithConfigure = (*inspectionRule)(nil)

// NewList returns the list resource metal_inspection_rule.
func NewList() list.ListResource { return &inspectionRule{} }

// ListResourceConfigSchema describes the filter.
func (r *inspectionRule) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the inspection rules of Ironic, or those with a description. A rule has no other name. Needs API 1.96.",
		Attributes:          map[string]schema.Attribute{"name_regex": framework.NameRegexAttribute("inspection rules")},
	}
}

// List streams the inspection rules.
func (r *inspectionRule) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	framework.ListedIn(ctx, &r.WithClient, ironic.InspectionRules, "inspection rule", req, stream, label, fill)
}

// label returns the UUID and the description of a rule.
func label(found *ironic.InspectionRule) (id, name string) { return found.UUID, found.Description }

// fill sets a listed inspection rule as an import does.
func fill(ctx context.Context, found *ironic.InspectionRule, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, found.UUID, &m)
	if diags.HasError() {
		return diags
	}
	m.refresh(ctx, found)
	return append(diags, to.Set(ctx, &m)...)
}
