package runbook

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

func (r *runbook) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Stores steps that operators run on a machine by name, to clean or service it. Creating or changing a " +
			"runbook runs nothing. Needs API 1.92.",
		Attributes: map[string]schema.Attribute{
			"id": framework.IDAttribute("UUID of the runbook."),
			"name": schema.StringAttribute{
				Required: true, Validators: framework.NameValidators(),
				MarkdownDescription: "Name of the runbook, unique in Ironic: at most 255 letters, digits, `.`, `_`, `~` and `-`. Before " +
					"API 1.112 it must be a trait, such as `CUSTOM_BMC`, and Ironic runs the runbook only on nodes with that trait. A " +
					"change is made in place.",
			},
			"description": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Description, at most 255 characters. Needs API 1.112. Default: not managed.",
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: framework.TraitValidators(),
				MarkdownDescription: "Ironic runs the runbook only on nodes with at least one of these traits. Needs API 1.112, from " +
					"which on a runbook without traits runs on no node. In older versions, the name is the trait. Default: not managed.",
			},
			"public": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "`true`: all projects may use the runbook. Only system administrators may set it. Ironic then " +
					"removes the owner of the runbook. Default: `false`.",
			},
			"disable_ramdisk": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "`true`: Ironic does not boot its ramdisk for the steps. Default: `false`.",
			},
			"steps": framework.Steps(framework.ByPosition, schema.ListNestedAttribute{
				Required: true, MarkdownDescription: "Steps, in the order in which Ironic runs them. A change is made in place. If it " +
					"changes the order, several requests follow each other: until the last, a machine may be cleaned with all steps in " +
					"another order.",
			}),
		},
	}
}
