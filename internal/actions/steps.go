package actions

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// order is the part of the configuration that metal_clean and metal_service have in common: what Ironic runs.
type order struct {
	Steps          types.List   `tfsdk:"steps"`
	Runbook        types.String `tfsdk:"runbook"`
	DisableRamdisk types.Bool   `tfsdk:"disable_ramdisk"`
}

// orderAttributes are the attributes of an order. ramdisk is the API version that disable_ramdisk needs.
func orderAttributes(ramdisk api.Microversion) map[string]schema.Attribute {
	steps := framework.ActionSteps("Steps, in the order in which Ironic runs them. Exactly one of `steps` and `runbook` is required.")
	steps.Validators = append(steps.Validators, listvalidator.ExactlyOneOf(path.MatchRoot("runbook")))
	return map[string]schema.Attribute{
		"steps": steps,
		"runbook": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Name or UUID of a runbook that has the steps. The node needs a trait of the runbook. " +
				"Needs API 1.92.",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"disable_ramdisk": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "`true`: Ironic does not boot its ramdisk for the steps. Default: `false`. Not allowed with `runbook`, " +
				"which has a setting of its own. Needs API " + ramdisk.String() + ".",
			Validators: []validator.Bool{boolvalidator.ConflictsWith(path.MatchRoot("runbook"))},
		},
	}
}

func (o order) order() ironic.Order {
	return ironic.Order{Steps: framework.OrderSteps(o.Steps), Runbook: o.Runbook.ValueString(), NoRamdisk: o.DisableRamdisk.ValueBool()}
}

func (o *operator) requireOrder(ctx context.Context, diags *diag.Diagnostics, with order, ramdisk api.Microversion) {
	o.Requires(ctx, diags,
		framework.Feature{Used: !with.Runbook.IsNull(), Since: api.VersionRunbooks, Name: path.Root("runbook")},
		framework.Feature{Used: with.DisableRamdisk.ValueBool(), Since: ramdisk, Name: path.Root("disable_ramdisk")})
}
