package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

type rolloutModel struct {
	Canary      types.Int64 `tfsdk:"canary"`
	MaxFailures types.Int64 `tfsdk:"max_failures"`
}

func rolloutSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Defaults of `rollout` for each `metal_deployment`, and each `metal_host` whose deployed machine is " +
			"serviced. See [Roll out a change](guides/roll-out.md).",
		Attributes: map[string]schema.Attribute{
			"canary": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "How many of the machines that get the same image or hardware settings, or restart, go " +
					"first. Default: `0`.",
			},
			"max_failures": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "How many failures in a row stop the run for such machines; `0`: no limit. Default: `3` for " +
					"machines that run already, no limit for first deployments.",
			},
		},
	}
}

// rolloutDefaults returns the defaults. A value that is not known yet is left open: nothing is applied then.
func rolloutDefaults(ctx context.Context, m model, diags *diag.Diagnostics) rollout.Settings {
	var block rolloutModel
	if m.Rollout.IsNull() || m.Rollout.IsUnknown() {
		return rollout.Settings{}
	}
	diags.Append(m.Rollout.As(ctx, &block, objectAsOptions)...)
	return rollout.Settings{Canary: framework.IntOrNil(block.Canary), MaxFailures: framework.IntOrNil(block.MaxFailures)}
}
