package inspectionrule

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

const (
	phaseMain   = "main"
	maxPriority = 9999

	// Values of multiple.
	multipleAny   = "any"
	multipleAll   = "all"
	multipleFirst = "first"
	multipleLast  = "last"
)

func (r *inspectionRule) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Changes what Ironic stores about a node, such as traits and properties, after its agent has inspected the " +
			"machine: if all conditions hold, Ironic runs the actions. A rule does nothing to machines, and nodes that were inspected " +
			"before stay as they are. Needs API 1.96.",
		Attributes: map[string]schema.Attribute{
			"id": framework.IDAttribute("UUID of the rule."),
			"description": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Description, at most 255 characters. Default: not managed.",
			},
			"priority": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(0),
				Validators:          []validator.Int64{int64validator.Between(0, maxPriority)},
				MarkdownDescription: "0 to 9999. Ironic applies rules with a higher priority first. Default: `0`.",
			},
			"phase": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(phaseMain),
				Validators:          []validator.String{stringvalidator.OneOf(phaseMain)},
				MarkdownDescription: "When Ironic applies the rule. Only `main` (default), after the inspection hooks.",
			},
			"sensitive": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "`true`: Ironic shows conditions and actions to no client, so the provider cannot see changes of " +
					"them. They are in Terraform's state. A change to `false` **replaces** the rule. Default: `false`.",
			},
			"conditions": schema.ListNestedAttribute{
				Optional: true, MarkdownDescription: "Conditions that must all hold. Default: none, so the rule applies to every machine.",
				NestedObject: schema.NestedAttributeObject{Attributes: operationAttributes(conditionOps(),
					"Operator. A leading `!` negates it.", map[string]schema.Attribute{
						"multiple": schema.StringAttribute{
							Optional: true, Validators: []validator.String{stringvalidator.OneOf(multipleAny, multipleAll, multipleFirst,
								multipleLast)},
							MarkdownDescription: "With `loop`, the items for which the condition must hold: `any` (Ironic's " +
								"default), `all`, " +
								"`first` or `last`.",
						},
					})},
				Validators: []validator.List{listvalidator.SizeAtLeast(1)},
			},
			"actions": schema.ListNestedAttribute{
				Required: true, MarkdownDescription: "Actions, in order.",
				NestedObject: schema.NestedAttributeObject{Attributes: operationAttributes(actionOps(), "Action.", nil)},
				Validators:   []validator.List{listvalidator.SizeAtLeast(1)},
			},
		},
	}
}

func operationAttributes(ops ops, what string, further map[string]schema.Attribute) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"op": schema.StringAttribute{
			Required: true, MarkdownDescription: what + " One of " + ops.list() + ".",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"args": schema.StringAttribute{
			Required: true, CustomType: framework.JSONType{}, PlanModifiers: framework.KeepSpelling(),
			MarkdownDescription: "Arguments, as a JSON object. Texts may have references such as `{inventory[cpu][count]}`, " +
				"`{node.driver}` and `{plugin_data[key]}`.",
		},
		"loop": schema.StringAttribute{
			Optional: true, CustomType: framework.JSONType{}, PlanModifiers: framework.KeepSpelling(),
			MarkdownDescription: "JSON array of items; the arguments refer to each as `{item}`.",
		},
	}
	maps.Copy(attributes, further)
	return attributes
}
