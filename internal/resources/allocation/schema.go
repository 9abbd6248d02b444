package allocation

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// mayReserveAnew ends the descriptions of attributes that demand something of the node.
const mayReserveAnew = " **A change may replace the allocation.**"

func (a *allocation) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reserves a node: Ironic selects an available one by class, traits and candidates. Reserving does nothing " +
			"to the machine.\n\n" +
			"To deploy on the node, pass `node_id` and `allocation_id` to a `metal_deployment`. Needs API 1.52.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the allocation.", PlanModifiers: stays},
			"name": schema.StringAttribute{
				Optional: true, Validators: framework.NameValidators(),
				MarkdownDescription: "Name of the allocation, unique in Ironic: at most 255 letters, digits, `.`, `_`, `~` and `-`. " +
					"Ironic prefers a node of the same name (API 1.79). A change is made in place (API 1.57).",
			},
			"resource_class": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 80)},
				MarkdownDescription: "Required unless `backfill_node` is set. Class that the node must have, at most 80 characters." +
					mayReserveAnew,
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: append(framework.TraitValidators(), setvalidator.SizeAtLeast(1)),
				MarkdownDescription: "Traits that the node must have, all of them." + mayReserveAnew,
			},
			"candidate_nodes": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "UUIDs or names of the nodes from which Ironic may select. Default: all nodes. Once a node is " +
					"reserved, a change has no effect. Not together with `backfill_node`.",
			},
			"require": framework.RequireAttribute("#hardware", objectvalidator.ConflictsWith(path.MatchRoot("backfill_node"))),
			"wait_for_capacity": schema.StringAttribute{
				Optional: true, Validators: []validator.String{
					framework.NotNegativeDuration,
					stringvalidator.ConflictsWith(path.MatchRoot("backfill_node")),
				},
				MarkdownDescription: "How long the apply waits while no node matches, such as `30m`; `timeouts` do not include this " +
					"time. All allocations that wait share one list of the nodes per `poll_interval`. Default: `0s`, the apply " +
					"fails at once.",
			},
			"owner": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Project that must be the owner or lessee of the node. Needs API 1.60." + mayReserveAnew,
			},
			"extra": schema.DynamicAttribute{
				Optional: true, Validators: []validator.Dynamic{framework.JSONObjectValue{}},
				MarkdownDescription: "Your own data, stored with the allocation: an object of JSON values, such as `{ team = \"web\" }`. " +
					"A change is made in place (API 1.57).",
			},
			"backfill_node": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "UUID or name of an active node without a reservation, on which something runs already. The new " +
					"allocation reserves this node. Not together with `traits`. Needs API 1.58." + mayReserveAnew,
				Validators: []validator.String{
					stringvalidator.ConflictsWith(path.MatchRoot("candidate_nodes"), path.MatchRoot("traits")),
					stringvalidator.LengthAtLeast(1),
				},
			},
			"on_unusable": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(allocate.UnusableStays),
					string(allocate.UnusableIsReplaced))},
				MarkdownDescription: "What the plan does if nothing is deployed on the reserved node, and the node is in maintenance, " +
					"has a fault or has another reservation. `keep` (the default): it warns. `replace`: it replaces the allocation, so " +
					"that Ironic reserves another node.",
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Longest time for Ironic to reserve a node. Default: `10m`.",
			}),
			"node_id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the reserved node.", PlanModifiers: stays},
			"node_name": schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the reserved node; null if it has none. " +
				"If the node is renamed, the next refresh shows the new name."},
			"state": schema.StringAttribute{Computed: true, MarkdownDescription: "`active`. After an interrupted apply also " +
				"`allocating`, which the next apply continues, or `error`, which it replaces."},
			"last_error": schema.StringAttribute{Computed: true, MarkdownDescription: "Why Ironic found no node; null without an error."},
			"created_at": schema.StringAttribute{Computed: true, MarkdownDescription: "Time of creation (RFC 3339).", PlanModifiers: stays},
		},
	}
}
