package allocation

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// Values of on_unusable.
const (
	onUnusableKeep    = "keep"
	onUnusableReplace = "replace"
)

// mayReserveAnew ends the descriptions of attributes that demand something of the node.
const mayReserveAnew = " After a change that the reserved node satisfies, it stays reserved; else another is reserved in its place."

// Schema describes metal_allocation.
func (a *allocation) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A reservation of a node: Ironic finds an available one by class, traits and candidates. Reserving changes nothing on the machine. " +
			"Needs API 1.52.\n\n" +
			"Ironic deletes an allocation when its node is undeployed; a `metal_deployment` that names it in `allocation_id` keeps it over rebuilds, " +
			"replacement and destruction.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the allocation.", PlanModifiers: stays},
			"name": schema.StringAttribute{
				Optional: true, Validators: framework.NameValidators(),
				MarkdownDescription: "Name, unique in Ironic. Ironic prefers the node of the same name (API 1.79). Renaming costs nothing (API 1.57).",
			},
			"resource_class": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 80)},
				MarkdownDescription: "Class that the node must have. Required unless `backfill_node` is given." + mayReserveAnew,
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: append(framework.TraitValidators(), setvalidator.SizeAtLeast(1)),
				MarkdownDescription: "Traits that the node must have." + mayReserveAnew,
			},
			"candidate_nodes": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "UUIDs or names of the nodes to choose from, for example those that a data source lists. Default: all. It limits the search, and nothing else: once a node is reserved, " +
					"no change gives it up, and the plan shows no difference. To reserve another node, use `terraform apply -replace`. An import does not read them back.",
			},
			"owner": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Project that the node's owner or lessee must be. Needs API 1.60." + mayReserveAnew,
			},
			"extra": schema.DynamicAttribute{
				Optional: true, Validators: []validator.Dynamic{framework.JSONObjectValue{}},
				MarkdownDescription: "Anything you want to keep with the allocation, as an object of JSON values. A change costs nothing (API 1.57).",
			},
			"backfill_node": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "UUID or name of an active node without a reservation, to adopt into a new allocation. Needs API 1.58." + mayReserveAnew,
				Validators: []validator.String{
					stringvalidator.ConflictsWith(path.MatchRoot("candidate_nodes"), path.MatchRoot("traits")), stringvalidator.LengthAtLeast(1),
				},
			},
			"on_unusable": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(onUnusableKeep, onUnusableReplace)},
				MarkdownDescription: "What to do if nothing is deployed on the reserved node and nothing can be, because it is in maintenance (also if `metal oneview sync` has taken it out of service), has a fault, " +
					"or has another reservation. `keep` (the default): the node stays reserved, and each plan warns. `replace`: the plan replaces the allocation, so that another node is reserved.",
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time for Ironic to find a node. Default: `10m`.",
				Delete: true, DeleteDescription: "Has no effect: releasing a node takes no time.",
			}),
			"node_id":    schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the reserved node.", PlanModifiers: stays},
			"node_name":  schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the reserved node."},
			"state":      schema.StringAttribute{Computed: true, MarkdownDescription: "`active`; after an interrupted apply `allocating`, or `error` if Ironic has found no node then: the next apply makes the allocation anew."},
			"last_error": schema.StringAttribute{Computed: true, MarkdownDescription: "Why the allocation failed."},
			"created_at": schema.StringAttribute{Computed: true, MarkdownDescription: "When it was made, in RFC 3339.", PlanModifiers: stays},
		},
	}
}
