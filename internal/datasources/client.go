// Package datasources implements the data sources: it converts values of Ironic and OneView to Terraform's types.
package datasources

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// withClient gives a data source the provider's client.
type withClient struct {
	client *machine.Site
	pool   *sharing.Pool // nil: no OneView is configured
}

// Configure takes the client from the provider. During validation there is none.
func (w *withClient) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	clients, ok := req.ProviderData.(framework.Clients)
	if !ok {
		resp.Diagnostics.AddError("The provider has a bug", fmt.Sprintf("The provider's data has type %T. Please report this.",
			req.ProviderData))
		return
	}
	w.client, w.pool = clients.Site, clients.Pool
}

// report adds the error of a read to the diagnostics.
func report(diags *diag.Diagnostics, doing string, err error) {
	if err != nil {
		diags.AddError(failure.Explain(doing, err))
	}
}

// orNull returns a string for state: null for Ironic's empty string.
func orNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// stringsValue converts a slice to a list of strings.
func stringsValue(items []string) types.List {
	values := make([]attr.Value, 0, len(items))
	for _, item := range items {
		values = append(values, types.StringValue(item))
	}
	return types.ListValueMust(types.StringType, values)
}

// setValue converts a slice to a set of strings.
func setValue(items []string) types.Set {
	return types.SetValueMust(types.StringType, stringsValue(items).Elements())
}

func text(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}
