package actions

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

// stepsConfig is the part of the configuration that metal_clean and metal_service have in common: what Ironic runs.
type stepsConfig struct {
	target
	Steps          types.List   `tfsdk:"steps"`
	Runbook        types.String `tfsdk:"runbook"`
	DisableRamdisk types.Bool   `tfsdk:"disable_ramdisk"`
}

type cleanConfig struct {
	stepsConfig
	Erase types.Bool `tfsdk:"erase"`
}

// NewClean returns metal_clean.
func NewClean() action.Action {
	return &invoked[cleanConfig]{
		about: "Cleans a free, `manageable` machine with steps of your own (a manual cleaning). **The machine " +
			"restarts**, unless Ironic's ramdisk is disabled. It stays `manageable`. Deployed and reserved machines are refused.",
		further: func() map[string]schema.Attribute {
			attributes := stepAttributes(api.VersionNoRamdisk)
			attributes["erase"] = schema.BoolAttribute{
				Optional: true, MarkdownDescription: "`true`: the steps may erase disks and replace volumes. Without it, steps of " +
					"`raid`, and steps whose names have `erase`, `wipe` or the like, are refused. Default: `false`.",
			}
			return attributes
		},
		refuse: func(c cleanConfig, diags *diag.Diagnostics) {
			if erasing := c.erasing(); erasing != "" && !c.Erase.IsUnknown() && !c.Erase.ValueBool() {
				diags.AddAttributeError(path.Root("steps"), "Cleaning would erase disks",
					"These steps erase disks, or replace volumes: "+erasing+". If that is what you want, set erase = true.")
			}
		},
		of: func(c cleanConfig, pool *sharing.Pool) operate.Operation {
			return operate.Clean(pool, c.order(), c.Erase.ValueBool())
		},
	}
}

// NewService returns metal_service.
func NewService() action.Action {
	return &invoked[stepsConfig]{
		about: "Services a deployed machine: Ironic runs steps on it and brings it back to `active`. **The machine " +
			"restarts**, unless Ironic's ramdisk is disabled. Steps that erase disks are refused. Needs API 1.87.",
		further: func() map[string]schema.Attribute { return stepAttributes(api.VersionServiceRamdisk) },
		refuse: func(c stepsConfig, diags *diag.Diagnostics) {
			if erasing := c.erasing(); erasing != "" {
				diags.AddAttributeError(path.Root("steps"), "Service would erase a deployed machine",
					"These steps erase disks, or replace volumes: "+erasing+".")
			}
		},
		of: func(c stepsConfig, _ *sharing.Pool) operate.Operation { return operate.Service(c.order()) },
	}
}

// stepAttributes are the attributes of a stepsConfig. ramdisk is the API version that disable_ramdisk needs.
func stepAttributes(ramdisk api.Microversion) map[string]schema.Attribute {
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

func (c stepsConfig) order() ironic.Order {
	order := ironic.Order{Steps: framework.OrderSteps(c.Steps), Runbook: c.Runbook.ValueString(), NoRamdisk: c.DisableRamdisk.ValueBool()}
	if c.Runbook.IsUnknown() {
		order.Runbook = "(known after apply)" // it needs the API version of all runbooks
	}
	return order
}

// erasing names the steps that erase disks; "" if none does.
func (c stepsConfig) erasing() string {
	return strings.Join(machine.Erasing(framework.OrderSteps(c.Steps)), ", ")
}
