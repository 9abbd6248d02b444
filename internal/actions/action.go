// Package actions implements the provider's actions: operations on a machine that Terraform invokes once. What they do is decided and done
// by the package operate, as for the commands of metal.
package actions

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

var (
	_ action.ActionWithConfigure      = (*invoked[target])(nil)
	_ action.ActionWithModifyPlan     = (*invoked[target])(nil)
	_ action.ActionWithValidateConfig = (*invoked[target])(nil)
)

// invoked is an action: an operation as a configuration C asks for it.
type invoked[C configuration] struct {
	framework.WithClient
	about   string // in Markdown
	further func() map[string]schema.Attribute
	of      func(C, *sharing.Pool) operate.Operation
	// refuse adds errors for a configuration that is wrong for every machine; nil: there is none.
	refuse func(C, *diag.Diagnostics)
}

// configuration is that of an action. The zero value is one, too.
type configuration interface{ on() target }

// target is the part of an action's configuration that all actions have.
type target struct {
	NodeID   types.String   `tfsdk:"node_id"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

func (t target) on() target { return t }

// standard is the operation without what a configuration asks for.
func (a *invoked[C]) standard() operate.Operation {
	var c C
	return a.of(c, nil)
}

// Metadata names the action.
func (a *invoked[C]) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = a.standard().Action
}

// Configure takes the clients from the provider.
func (a *invoked[C]) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.Take(req.ProviderData, &resp.Diagnostics)
}

// Schema describes the action.
func (a *invoked[C]) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	within, _ := timeouts.AttributesWithOpts(ctx, timeouts.Opts{
		InvokeDescription: fmt.Sprintf("Time for the operation, without the time that the machine waits for a slot of the provisioning "+
			"limit. Default: `%dm`.", int(a.standard().Timeout.Minutes())),
	}).(schema.SingleNestedAttribute)
	invoke, _ := within.Attributes["invoke"].(schema.StringAttribute)
	invoke.Validators = []validator.String{framework.NotNegativeDuration}
	within.Attributes["invoke"] = invoke
	attributes := map[string]schema.Attribute{
		"node_id": schema.StringAttribute{
			Required: true, MarkdownDescription: "UUID or name of the node.",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"timeouts": within,
	}
	if a.further != nil {
		maps.Copy(attributes, a.further())
	}
	resp.Schema = schema.Schema{MarkdownDescription: a.about, Attributes: attributes}
}

// ValidateConfig refuses what is wrong for every machine.
func (a *invoked[C]) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	var c C
	if resp.Diagnostics.Append(req.Config.Get(ctx, &c)...); a.refuse != nil && !resp.Diagnostics.HasError() {
		a.refuse(c, &resp.Diagnostics)
	}
}

// ModifyPlan refuses what the API version does not support.
func (a *invoked[C]) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var c C
	if resp.Diagnostics.Append(req.Config.Get(ctx, &c)...); !a.Known() || resp.Diagnostics.HasError() {
		return
	}
	if a.Requires(ctx, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	op := a.of(c, a.Pool)
	if err := op.Offered(ctx, a.Site.Ironic); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "use "+op.Action, err)
	}
}

// Invoke does the operation. Terraform shows each state that the machine enters.
func (a *invoked[C]) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	defer a.Finish(ctx, &resp.Diagnostics)
	var c C
	if resp.Diagnostics.Append(req.Config.Get(ctx, &c)...); resp.Diagnostics.HasError() {
		return
	}
	op, label := a.of(c, a.Pool), c.on().NodeID.ValueString()
	var diags diag.Diagnostics
	op.Timeout, diags = c.on().Timeouts.Invoke(ctx, op.Timeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	p := &progress{ctx: ctx, send: resp.SendProgress}
	defer p.end()
	runner := operate.Runner{Site: a.Site, By: operate.Operator(os.Getenv), Tell: func(_ *ironic.Node, text string) { p.tell(text) }}
	end := runner.Invoke(ctx, op, label)
	if end.Node != nil {
		label = ironic.NodeLabel(end.Node)
	}
	framework.ReportOnce(&resp.Diagnostics, op.Doing+" node "+label, end.Node, end.Err, end.Left)
	if end.Note != "" {
		p.tell("node " + label + ": " + end.Note)
	}
}

// progress sends messages to Terraform until the action ends. It is safe for concurrent use.
type progress struct {
	ctx  context.Context //nolint:containedctx // ends with the action
	send func(action.InvokeProgressEvent)

	mu    sync.Mutex
	ended bool
}

// tell sends a message. The framework's function does not return if Terraform does not read any more, so that tell then leaves it.
func (p *progress) tell(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	sent := routine.Go(func() { p.send(action.InvokeProgressEvent{Message: text}) }, func(*routine.PanicError) {})
	select {
	case <-sent:
	case <-p.ctx.Done():
		p.ended = true
	}
}

// end makes tell do nothing from now on: the framework accepts no message after the action.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
