// Package actions implements the provider's actions: operations on a machine that Terraform invokes once.
package actions

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// operator is what all actions have in common: the name, the clients, and the way to operate a machine.
type operator struct {
	framework.WithClient
	name string
}

// Metadata names the action.
func (o *operator) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = o.name
}

// Configure takes the clients from the provider.
func (o *operator) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	o.Take(req.ProviderData, &resp.Diagnostics)
}

// offered adds an error if the API version does not support the action. since: the first version that does; zero: all do.
func (o *operator) offered(ctx context.Context, since api.Microversion, diags *diag.Diagnostics) {
	if since > 0 && o.Known() {
		o.Offers(ctx, diags, since, o.name)
	}
}

// target is the part of an action's configuration that all actions have.
type target struct {
	NodeID   types.String   `tfsdk:"node_id"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

// schemaOf returns the schema of an action with further attributes. limit is its default time-out.
func schemaOf(ctx context.Context, description string, limit time.Duration, further map[string]schema.Attribute) schema.Schema {
	within, _ := timeouts.AttributesWithOpts(ctx, timeouts.Opts{
		InvokeDescription: fmt.Sprintf("Time for the operation, without the time that the machine waits for a slot of the provisioning "+
			"limit. Default: `%s`.", short(limit)),
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
	maps.Copy(attributes, further)
	return schema.Schema{MarkdownDescription: description, Attributes: attributes}
}

// short returns a duration of whole minutes as configurations write it.
func short(d time.Duration) string { return fmt.Sprintf("%dm", int(d.Minutes())) }

// operate reads the machine of an action and calls do, while no other action of this run operates it. Terraform shows each state that the
// machine enters. doing is an infinitive whose object is the node.
func (o *operator) operate(ctx context.Context, on target, doing string, limit time.Duration, resp *action.InvokeResponse,
	do func(m *machine.Machine, limit time.Duration) error,
) {
	defer o.Finish(ctx, &resp.Diagnostics)
	limit, diags := on.Timeouts.Invoke(ctx, limit)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	m, done, err := o.Site.Operate(ctx, on.NodeID.ValueString())
	if err != nil {
		framework.ReportOnce(&resp.Diagnostics, doing+" node "+on.NodeID.ValueString(), nil, err)
		return
	}
	defer done()
	p := &progress{ctx: ctx, send: resp.SendProgress}
	defer p.end()
	m.Tell(p.tell)
	err = do(m, limit)
	framework.ReportOnce(&resp.Diagnostics, doing+" node "+ironic.NodeLabel(m.Node()), m.Node(), err)
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
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		p.send(action.InvokeProgressEvent{Message: text})
	}()
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
