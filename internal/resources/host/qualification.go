package host

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Values of qualification.on_failure.
const (
	onFailureQuarantine = "quarantine"
	onFailureRetry      = "retry"
)

// qualificationTimeout is the longest time that a qualification takes by default. Each step of a burn-in takes a day by default.
const qualificationTimeout = 7 * 24 * time.Hour

type qualificationModel struct {
	Runbook    types.String   `tfsdk:"runbook"`
	Steps      types.List     `tfsdk:"steps"`
	Parameters framework.JSON `tfsdk:"parameters"`
	ValidFor   types.String   `tfsdk:"valid_for"`
	OnFailure  types.String   `tfsdk:"on_failure"`
	Timeout    types.String   `tfsdk:"timeout"`
}

func qualificationAttribute() attribute {
	return attribute{
		name: "qualification", schema: qualificationSchema(),
		feature: func(config *model) framework.Feature {
			runbook, _ := config.Qualification.Attributes()["runbook"].(types.String)
			return framework.Feature{
				Used: framework.IsSet(runbook), Since: api.VersionRunbooks, Name: path.Root("qualification").AtName("runbook"),
			}
		},
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.Qualification, planned.Qualification) },
	}
}

func qualificationSchema() schema.Attribute {
	age := func(description string) schema.StringAttribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: description, Validators: []validator.String{framework.Age},
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Steps that prove the machine fit for work, such as a burn-in: before it enters the pool, and again when " +
			"`valid_for` is over while it is free. **It boots, and the steps may erase disks.** A machine that fails stays out of the " +
			"pool, with a warning. See [Accept a delivery](../guides/accept-a-delivery.md#burn-it-in).",
		Attributes: map[string]schema.Attribute{
			"runbook": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Runbook of Ironic with the steps, in place of `steps`. Needs API 1.92.",
				Validators: []validator.String{
					stringvalidator.LengthAtLeast(1), stringvalidator.ExactlyOneOf(path.MatchRelative().AtParent().AtName("steps")),
				},
			},
			"steps": framework.Steps(framework.ByPosition, schema.ListNestedAttribute{
				Optional: true, MarkdownDescription: "The steps, in order. The node notes them: no secrets.",
			}),
			"parameters": schema.StringAttribute{
				Optional: true, CustomType: framework.JSONType{}, PlanModifiers: framework.KeepSpelling(),
				MarkdownDescription: "Keys `agent_burnin_...` of `driver_info` while the steps run, as a JSON object.",
				Validators:          []validator.String{framework.BurnInParameters},
			},
			"valid_for": age("How long a pass counts, such as `90d`. Default: always. A change counts from the next plan on."),
			"on_failure": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(onFailureQuarantine, onFailureRetry)},
				MarkdownDescription: "`quarantine` (the default) retires a machine that fails, unless the reason speaks against the " +
					"request or the site; `retry` leaves it to the next apply.",
			},
			"timeout": age("How long the steps may take. Default: `7d`."),
		},
	}
}

// qualification returns how the machine proves that it is fit; null if it does not.
func (m *model) qualification(ctx context.Context) (q decide.Value[hosts.Qualification]) {
	switch {
	case m.Qualification.IsNull():
		return q
	case !framework.FullyKnown(ctx, m.Qualification):
		return decide.Unknown[hosts.Qualification]()
	}
	var c qualificationModel
	if m.Qualification.As(ctx, &c, basetypes.ObjectAsOptions{}).HasError() {
		return q // the schema fits
	}
	age := func(text types.String, otherwise time.Duration) time.Duration {
		if age, ok := clock.ParseAge(text.ValueString()); ok {
			return age
		}
		return otherwise
	}
	parameters := framework.JSONDocument(c.Parameters)
	return decide.Known(hosts.Qualification{
		Recipe:   notes.Recipe{Runbook: c.Runbook.ValueString(), Steps: framework.OrderSteps(c.Steps), Parameters: parameters},
		ValidFor: age(c.ValidFor, forever), Quarantines: c.OnFailure.ValueString() != onFailureRetry,
		Timeout: age(c.Timeout, qualificationTimeout),
	})
}

// forever is longer than any machine lives.
const forever = 100 * 365 * 24 * time.Hour

// isFitAs reports whether a refresh would see the machine as the last one has.
func (h *host) isFitAs(ctx context.Context, m *model, node *ironic.Node, was *hosts.Fitness) bool {
	now := hosts.SeeFitness(ctx, h.Site, node, m.qualification(ctx), was)
	return now == nil && was == nil || now != nil && was != nil && *now == *was
}
