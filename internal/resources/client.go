// Package resources is the Terraform glue of the managed resources: Terraform's types to Ironic's and back, the order of
// calls, and what goes into state. It decides nothing about provision states; that is internal/ironic's.
package resources

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// withClient gives a resource the provider's client.
type withClient struct {
	client *ironic.Client
	pool   *oneview.Pool // with the client, and the appliance if there is one
}

// Configure takes the client from the provider; there is none yet while Terraform only validates.
func (w *withClient) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
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

// known reports whether Ironic can be asked during a plan.
func (w *withClient) known() bool { return w.client != nil && w.client.Known() }

// hasOneView reports whether there is an appliance, and it is known which.
func (w *withClient) hasOneView() bool {
	return w.pool != nil && w.pool.OneView != nil && w.pool.OneView.Known()
}

// feature is an attribute that Ironic has had since a version of its API.
type feature struct {
	used  bool
	since ironic.Microversion
	name  path.Path
}

// requires reports at each attribute that is used and that the API is too old for, during plan; and likewise that it is too
// old for the provider's own limit.
func (w *withClient) requires(ctx context.Context, diags *diag.Diagnostics, features ...feature) {
	if err := w.client.LimitRequires(ctx); err != nil {
		diags.AddError(ironic.Explain("keep to provisioning_limit", err))
	}
	for _, f := range features {
		if !f.used {
			continue
		}
		if err := w.client.Requires(ctx, f.since, f.name.String()); err != nil {
			summary, detail := ironic.Explain("use "+f.name.String(), err)
			diags.AddAttributeError(f.name, summary, detail)
		}
	}
}

// identity is the identity of every resource: its UUID.
type identity struct {
	ID types.String `tfsdk:"id"`
}

func identitySchema(what string) identityschema.Schema {
	return identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "UUID of the " + what + "."},
	}}
}

// finish ends a method that changes something, deferred. It turns a panic into a diagnostic, so that what the method has
// put into state by then is kept, and passes on what there is to tell of the run.
func (w *withClient) finish(ctx context.Context, diags *diag.Diagnostics) {
	if r := recover(); r != nil {
		tflog.Error(ctx, "panic in the provider", map[string]any{"panic": fmt.Sprint(r), "stack": string(debug.Stack())})
		diags.AddError("The provider has a bug", fmt.Sprintf("It panicked: %v. What it had done by then is in the state. "+
			"Please report this with the stack trace from the log (TF_LOG=ERROR).", r))
	}
	if w.client == nil {
		return
	}
	for _, notice := range w.client.Notices() {
		diags.AddWarning(notice.Summary, notice.Detail)
	}
}

// report adds what became of an operation to the diagnostics. An interruption by the user is a warning: the state is
// complete, nothing is tainted, and the next apply goes on from there.
func report(diags *diag.Diagnostics, doing string, err error) {
	if err == nil {
		return
	}
	summary, detail := ironic.Explain(doing, err)
	if ironic.IsInterrupted(err) {
		diags.AddWarning("Interrupted: "+doing, detail)
		return
	}
	diags.AddError(summary, detail)
}

// orNull is a string for state: Ironic's empty is Terraform's null.
func orNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// isSet reports whether a value is there and known.
func isSet(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// isFalse reports whether a value is known to be false.
func isFalse(v types.Bool) bool { return isSet(v) && !v.ValueBool() }
