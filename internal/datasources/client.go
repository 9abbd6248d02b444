// Package datasources is the Terraform glue of the data sources: what Ironic knows, in Terraform's types.
package datasources

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// withClient gives a data source the provider's client.
type withClient struct {
	client *ironic.Client
	pool   *oneview.Pool // with the client, and the appliance if there is one
}

// Configure takes the client from the provider; there is none yet while Terraform only validates.
func (w *withClient) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	pool, ok := req.ProviderData.(*oneview.Pool)
	if !ok {
		resp.Diagnostics.AddError("The provider has a bug", fmt.Sprintf("Its data is a %T.", req.ProviderData))
		return
	}
	w.client, w.pool = pool.Ironic, pool
}

// report adds what became of a read to the diagnostics.
func report(diags *diag.Diagnostics, doing string, err error) {
	if err != nil {
		diags.AddError(ironic.Explain(doing, err))
	}
}

// orNull is a string for state: Ironic's empty is Terraform's null.
func orNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// stringsValue is a slice as a list of strings.
func stringsValue(items []string) types.List {
	values := make([]attr.Value, 0, len(items))
	for _, item := range items {
		values = append(values, types.StringValue(item))
	}
	return types.ListValueMust(types.StringType, values)
}

func text(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}
