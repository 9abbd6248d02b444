package allocation

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// Values of on_unusable.
const (
	onUnusableKeep    = "keep"
	onUnusableReplace = "replace"
)

// mayReserveAnew ends the descriptions of attributes that demand something of the node.
const mayReserveAnew = " **A change may replace the allocation.**"

// Schema describes metal_allocation.
func (a *allocation) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reserves a node: Ironic selects an available one by class, traits and candidates. Reserving does nothing to the machine.\n\n" +
			"To deploy on the node, pass `node_id` and `allocation_id` to a `metal_deployment`. Needs API 1.52.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the allocation.", PlanModifiers: stays},
			"name": schema.StringAttribute{
				Optional: true, Validators: framework.NameValidators(),
				MarkdownDescription: "Name of the allocation, unique in Ironic: at most 255 letters, digits, `.`, `_`, `~` and `-`. Ironic prefers a node of the same name (API 1.79). A change is made in place (API 1.57).",
			},
			"resource_class": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 80)},
				MarkdownDescription: "Required unless `backfill_node` is set. Class that the node must have, at most 80 characters." + mayReserveAnew,
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: append(framework.TraitValidators(), setvalidator.SizeAtLeast(1)),
				MarkdownDescription: "Traits that the node must have, all of them." + mayReserveAnew,
			},
			"candidate_nodes": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "UUIDs or names of the nodes from which Ironic may select. Default: all nodes. Once a node is reserved, a change has no effect. " +
					"Not together with `backfill_node`.",
			},
			"require": requireSchema(),
			"wait_for_capacity": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.NotNegativeDuration, stringvalidator.ConflictsWith(path.MatchRoot("backfill_node"))},
				MarkdownDescription: "How long the apply waits while no node matches, such as `30m`; `timeouts` do not include this time. All allocations that wait share one list of the nodes per `poll_interval`. " +
					"Default: `0s`, the apply fails at once.",
			},
			"owner": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Project that must be the owner or lessee of the node. Needs API 1.60." + mayReserveAnew,
			},
			"extra": schema.DynamicAttribute{
				Optional: true, Validators: []validator.Dynamic{framework.JSONObjectValue{}},
				MarkdownDescription: "Your own data, stored with the allocation: an object of JSON values, such as `{ team = \"web\" }`. A change is made in place (API 1.57).",
			},
			"backfill_node": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "UUID or name of an active node without a reservation, on which something runs already. The new allocation reserves this node. Not together with `traits`. Needs API 1.58." + mayReserveAnew,
				Validators: []validator.String{
					stringvalidator.ConflictsWith(path.MatchRoot("candidate_nodes"), path.MatchRoot("traits")), stringvalidator.LengthAtLeast(1),
				},
			},
			"on_unusable": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(onUnusableKeep, onUnusableReplace)},
				MarkdownDescription: "What the plan does if nothing is deployed on the reserved node, and the node is in maintenance, has a fault or has another reservation. " +
					"`keep` (the default): it warns. `replace`: it replaces the allocation, so that Ironic reserves another node.",
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Longest time for Ironic to reserve a node. Default: `10m`.",
				Delete: true, DeleteDescription: "No effect: a release takes one request.",
			}),
			"node_id":    schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the reserved node.", PlanModifiers: stays},
			"node_name":  schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the reserved node."},
			"state":      schema.StringAttribute{Computed: true, MarkdownDescription: "`active`. After an interrupted apply also `allocating`, which the next apply continues, or `error`, which it replaces."},
			"last_error": schema.StringAttribute{Computed: true, MarkdownDescription: "Why Ironic found no node; null without an error."},
			"created_at": schema.StringAttribute{Computed: true, MarkdownDescription: "Time of creation (RFC 3339).", PlanModifiers: stays},
		},
	}
}

// requireSchema describes require.
func requireSchema() schema.Attribute {
	least := func(description string) schema.Attribute {
		return schema.Int64Attribute{Optional: true, MarkdownDescription: description, Validators: []validator.Int64{int64validator.AtLeast(1)}}
	}
	text := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	return schema.SingleNestedAttribute{
		Optional: true, Validators: []validator.Object{objectvalidator.ConflictsWith(path.MatchRoot("backfill_node"))},
		MarkdownDescription: "Requirements that Ironic cannot check: the provider selects the nodes that meet them, and sends these as candidates. Once a node is reserved, a change has no effect, and the plan warns if the node does not fit. " +
			"If a required fact about a node is not known, the node does not fit. See [Hardware](#hardware).",
		Attributes: map[string]schema.Attribute{
			"min_cpus":      least("Smallest number of CPUs, as Ironic counts them."),
			"min_memory_mb": least("Smallest memory, in MiB."),
			"min_disk_gb":   least("Smallest size of the largest disk, in GiB. With `disk_type`, of the largest disk of that type."),
			"disk_type":     text("Type that one disk must have: `hdd`, `ssd` (NVMe included) or `nvme`. Needs API 1.81.", stringvalidator.OneOf(provision.DiskTypes()...)),
			"min_nic_mbps":  least("Smallest speed of the fastest network card, in Mbit/s. The inspection sees the speed of cards with a link. Needs API 1.81."),
			"cpu_arch":      text("Architecture, such as `x86_64`.", stringvalidator.LengthAtLeast(1)),
			"manufacturer":  text("Regular expression (RE2) for the manufacturer, such as `^Dell`.", framework.RegularExpression, stringvalidator.LengthAtLeast(1)),
			"product":       text("Regular expression (RE2) for the product.", framework.RegularExpression, stringvalidator.LengthAtLeast(1)),
			"capabilities": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Entries that `properties.capabilities` of the node must have, such as `{ boot_mode = \"uefi\" }`.",
				Validators: []validator.Map{mapvalidator.KeysAre(framework.Capability), mapvalidator.ValueStringsAre(framework.Capability)},
			},
			"conductor_group": text("Conductor group of the node; `\"\"` for nodes without one."),
			"exclude": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Names or UUIDs of nodes that do not fit.",
				Validators: []validator.Set{setvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
			},
		},
	}
}
