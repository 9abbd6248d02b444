// Package framework contains what resources and data sources share of the plugin framework: the provider's clients, identity,
// conversion of errors into diagnostics, conversion of values, and validators.
package framework

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

// Clients are the clients of a configured provider.
type Clients struct {
	Site *machine.Site
	Pool *sharing.Pool // nil: no OneView is configured

	// OnChange is the default of on_change for every metal_deployment. It may be null or unknown.
	OnChange types.String

	// HardwareDrift is the default of hardware_drift for every metal_host. It may be null or unknown.
	HardwareDrift types.String

	// LostRecords is what becomes of resources whose records Ironic has lost.
	LostRecords lost.Policy

	// Rollout has the defaults of rollout for every metal_deployment.
	Rollout rollout.Settings
}

// WithClient gives a resource the provider's clients.
type WithClient struct {
	Site *machine.Site // nil while Terraform only validates
	Pool *sharing.Pool // nil: no OneView is configured

	OnChange, HardwareDrift types.String     // as in Clients
	LostRecords             lost.Policy      // as in Clients
	Rollout                 rollout.Settings // as in Clients
}

// Configure takes the clients from the provider.
func (w *WithClient) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	w.Take(req.ProviderData, &resp.Diagnostics)
}

// Take takes the clients from the provider's data. Terraform passes none while it only validates.
func (w *WithClient) Take(data any, diags *diag.Diagnostics) {
	if data == nil {
		return
	}
	clients, ok := data.(Clients)
	if !ok {
		diags.AddError("The provider has a bug", fmt.Sprintf("The provider's data has type %T. Please report this.", data))
		return
	}
	w.Site, w.Pool, w.OnChange, w.HardwareDrift, w.Rollout = clients.Site, clients.Pool, clients.OnChange, clients.HardwareDrift,
		clients.Rollout
	w.LostRecords = clients.LostRecords
}

// Known reports whether Ironic can be asked during a plan.
func (w *WithClient) Known() bool { return w.Site != nil && w.Site.Ironic.Known() }

// SiteInPlan returns the site if Ironic can be asked during a plan; else nil.
func (w *WithClient) SiteInPlan() *machine.Site {
	if w.Known() {
		return w.Site
	}
	return nil
}

// HasOneView reports whether a OneView appliance is configured and its settings are known.
func (w *WithClient) HasOneView() bool {
	return w.Pool != nil && w.Pool.OneView.Known()
}

// EndTemporary removes the temporary server profile that a node has got in OneView for an operation; see Pool.EndTemporaryOf.
func (w *WithClient) EndTemporary(ctx context.Context, node *ironic.Node, limit time.Duration) error {
	return w.Pool.EndTemporaryOf(ctx, node, limit)
}

// Feature is an attribute that Ironic supports since an API version.
type Feature struct {
	Used  bool
	Since api.Microversion
	Name  path.Path
}

// Requires adds an error at each used attribute that the API version does not support, and one if it does not support the
// configured provisioning_limit. If Ironic does not say which version it supports, that is the only error. It is called during plan.
func (w *WithClient) Requires(ctx context.Context, diags *diag.Diagnostics, features ...Feature) {
	if _, err := w.Site.Ironic.Microversion(ctx); err != nil {
		ReportUndone(diags, "ask Ironic for its API version", err)
		return
	}
	if err := w.Site.LimitRequires(ctx); err != nil {
		diags.AddError(failure.Explain("apply provisioning_limit", err))
	}
	for _, f := range features {
		if !f.Used {
			continue
		}
		if err := w.Site.Ironic.Requires(ctx, f.Since, f.Name.String()); err != nil {
			summary, detail := failure.Explain("use "+f.Name.String(), err)
			diags.AddAttributeError(f.Name, summary, detail)
		}
	}
}

// Offers adds an error if the API version does not support a resource at all, and reports whether it does. It is called during plan.
func (w *WithClient) Offers(ctx context.Context, diags *diag.Diagnostics, since api.Microversion, resource string) bool {
	err := w.Site.Ironic.Requires(ctx, since, resource)
	if err != nil {
		ReportUndone(diags, "use "+resource, err)
	}
	return err == nil
}

// WarnMissingTraits adds a warning at an attribute for each trait that no node has. consequence is a sentence. It is called during plan.
func (w *WithClient) WarnMissingTraits(ctx context.Context, diags *diag.Diagnostics, at path.Path, traits []string, consequence string) {
	sentences, err := expect.MissingTraits(ctx, w.Site, traits)
	if err != nil {
		Report(diags, "look for nodes with a trait", err)
	}
	for _, sentence := range sentences {
		diags.AddAttributeWarning(at, "No node has this trait", sentence+" "+consequence)
	}
}

// Finish must be deferred by every method that changes something. It turns a panic into a diagnostic, so that the state that the
// method has set is kept, and adds the run's notices as warnings.
func (w *WithClient) Finish(ctx context.Context, diags *diag.Diagnostics) {
	if r := recover(); r != nil {
		tflog.Error(ctx, "panic in the provider", map[string]any{"panic": fmt.Sprint(r), "stack": string(debug.Stack())})
		diags.AddError("The provider has a bug", fmt.Sprintf("The provider panicked: %v. The state contains what it had done before that. "+
			"Please report this with the stack trace from the log (TF_LOG=ERROR).", r))
	}
	if w.Site == nil {
		return
	}
	for _, notice := range w.Site.Notices() {
		diags.AddWarning(notice.Summary, notice.Detail)
	}
}
