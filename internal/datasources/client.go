// Package datasources implements the data sources: it converts values of Ironic and OneView to Terraform's types.
package datasources

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// source is what all data sources have in common: the name and the provider's clients.
type source struct {
	framework.WithClient
	name string
}

func (d *source) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.name
}

func (d *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.Take(req.ProviderData, &resp.Diagnostics)
}

func report(diags *diag.Diagnostics, doing string, err error) {
	if err != nil {
		diags.AddError(failure.Explain(doing, err))
	}
}

// orNull returns a string for state: null for Ironic's empty string.
func orNull(s string) types.String { return framework.OrNull(s) }

func stringsValue(items []string) types.List {
	values := make([]attr.Value, 0, len(items))
	for _, item := range items {
		values = append(values, types.StringValue(item))
	}
	return types.ListValueMust(types.StringType, values)
}

func setValue(items []string) types.Set {
	return types.SetValueMust(types.StringType, stringsValue(items).Elements())
}

func text(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func list(description string) schema.ListAttribute {
	return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}

func typesOf(attributes map[string]schema.Attribute) map[string]attr.Type {
	kinds := map[string]attr.Type{}
	for name, attribute := range attributes {
		kinds[name] = attribute.GetType()
	}
	return kinds
}
