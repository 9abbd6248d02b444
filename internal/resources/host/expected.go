package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
)

// expectHardwareAttribute makes expect_hardware. Its value is dynamic, because Terraform drops unknown keys of other objects without a
// word.
func expectHardwareAttribute() attribute {
	return attribute{
		name: "expect_hardware",
		schema: schema.DynamicAttribute{
			Optional: true, Validators: []validator.Dynamic{modelValidator{}},
			MarkdownDescription: "Hardware that the machine must have: a model of a lock file, as in " +
				"`jsondecode(file(\"hardware.lock.json\"))[\"PowerEdge R750\"]`. What an inspection finds otherwise is a warning of each " +
				"plan, and **keeps a machine that is not in the pool out of it**. See [Accept a " +
				"delivery](../guides/accept-a-delivery.md#what-is-compared). Needs API 1.81.",
		},
		feature: func(config *model) framework.Feature {
			return framework.Feature{Used: !config.ExpectHardware.IsNull(), Since: api.VersionInventory, Name: path.Root("expect_hardware")}
		},
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.ExpectHardware, planned.ExpectHardware) },
	}
}

type modelValidator struct{}

// Description says what it accepts.
func (modelValidator) Description(context.Context) string {
	return "must be an object of " + hardware.Keys
}

func (v modelValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateDynamic refuses what is no model.
func (modelValidator) ValidateDynamic(ctx context.Context, req validator.DynamicRequest, resp *validator.DynamicResponse) {
	if !framework.IsSet(req.ConfigValue) || !framework.FullyKnown(ctx, req.ConfigValue) {
		return
	}
	if _, err := hardware.Parse(framework.JSONOf(req.ConfigValue)); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Hardware that cannot be expected", "In expect_hardware, "+err.Error()+". Of a lock "+
			"file, take one model: jsondecode(file(\"hardware.lock.json\"))[\"PowerEdge R750\"].")
	}
}

// expectedHardware returns what the machine must have; null if that is nothing.
func (m *model) expectedHardware(ctx context.Context) (want decide.Value[hardware.Model]) {
	switch {
	case m.ExpectHardware.IsNull():
		return want
	case !framework.FullyKnown(ctx, m.ExpectHardware):
		return decide.Unknown[hardware.Model]()
	}
	model, err := hardware.Parse(framework.JSONOf(m.ExpectHardware))
	if err != nil || model.IsEmpty() {
		return want // the validator reports it
	}
	return decide.Known(model)
}

// prove notes how the machine compares with what a state expects of it.
func (h *host) prove(ctx context.Context, m *model, node *ironic.Node, p *private, diags *diag.Diagnostics) {
	var notices []decide.Notice
	p.Proof, notices = hosts.Prove(ctx, h.Site, node, m.expectedHardware(ctx).V, p.Proof)
	framework.Show(diags, notices...)
}

// proofNow compares the machine with what a plan expects of it; nil if it is not known.
func (h *host) proofNow(ctx context.Context, q question) *hosts.Proof {
	node, err := h.Site.Ironic.NodeForRefresh(ctx, q.state.ID.ValueString())
	if err != nil {
		return nil // the refresh has reported it
	}
	now, notices := hosts.Prove(ctx, h.Site, node, q.wish.Expected.V, nil)
	framework.Show(q.diags, notices...)
	return now
}
