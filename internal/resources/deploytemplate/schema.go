package deploytemplate

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

func (r *deployTemplate) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Adds deploy steps to deployments that ask for a trait. A deployment uses the template if its `traits`, or " +
			"those of its allocation, contain the template's name. Needs API 1.55.",
		Attributes: map[string]schema.Attribute{
			"id": framework.IDAttribute("UUID of the template."),
			"name": schema.StringAttribute{
				Required: true, Validators: []validator.String{framework.Trait()},
				MarkdownDescription: "Trait that selects the template, such as `CUSTOM_RAID1`; unique in Ironic. A change is made in " +
					"place. **A `metal_deployment` whose `traits` refer to it is then rebuilt.**",
			},
			"steps": framework.Steps(framework.ByPriority, schema.ListNestedAttribute{
				Required: true,
				MarkdownDescription: "Steps that Ironic runs in addition to those of the driver. A change is made in place and concerns " +
					"later deployments and rebuilds only.",
			}),
		},
	}
}
