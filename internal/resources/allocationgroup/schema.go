package allocationgroup

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// domainRoot matches what spread_by may name.
var domainRoot = regexp.MustCompile(`^(conductor_group|chassis|(extra|properties)\.[^.]+(\.[^.]+)*)$`)

const (
	longestName = 240 // of a group: Ironic allows 255 for the names of the members
	largestSize = 1000

	// newMembersOnly ends the descriptions of attributes that choose nodes.
	newMembersOnly = " A change concerns members that get a node later."
)

func (r *group) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reserves nodes for all members of a group, or none: if a node is missing, nothing stays reserved. " +
			"Reserving does nothing to the machines.\n\n" +
			"To deploy on the nodes, use `for_each` over `members` in a `metal_deployment`. Needs API 1.52.",
		Attributes: map[string]schema.Attribute{
			"id": framework.IDAttribute("UUID of the allocation that the first member had when the group was created."),
			"name": schema.StringAttribute{
				Required: true, Validators: append(framework.NameValidators(), stringvalidator.LengthAtMost(longestName)),
				MarkdownDescription: "Name of the group, at most 240 characters. The allocations have the names `NAME-0`, `NAME-1` and " +
					"so on. A change renames them in place (API 1.57); the keys of `members` stay those of the creation.",
			},
			"size": schema.Int64Attribute{
				Required: true, Validators: []validator.Int64{int64validator.Between(1, largestSize)},
				MarkdownDescription: "Number of members, 1 to 1000. Growing adds members, and keeps the others. Shrinking releases those " +
					"with the highest numbers, see [Shrink a group](#shrink-a-group).",
			},
			"resource_class": schema.StringAttribute{
				Required: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 80)},
				MarkdownDescription: "Class that the nodes must have, at most 80 characters." + newMembersOnly,
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: append(framework.TraitValidators(), setvalidator.SizeAtLeast(1)),
				MarkdownDescription: "Traits that each node must have, all of them." + newMembersOnly,
			},
			"candidate_nodes": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "UUIDs or names of the nodes from which the provider may select, for example from " +
					"`data.metal_hosts`. Default: all nodes. While all members have nodes, a changed list is no difference.",
			},
			"require": framework.RequireAttribute("allocation.md#hardware"),
			"owner": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Project that must be the owner or lessee of each node. Needs API 1.60." + newMembersOnly,
			},
			"wait_for_capacity": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.NotNegativeDuration},
				MarkdownDescription: "How long the apply waits while too few nodes match, such as `30m`. Nothing is reserved meanwhile. " +
					"`timeouts` do not include this time. Default: `0s`, the apply fails at once.",
			},
			"spread_by": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.RegexMatches(domainRoot,
					"must be extra.KEY, properties.KEY, conductor_group or chassis")},
				MarkdownDescription: "What names the domain of a node, such as its rack: `extra.KEY`, `properties.KEY`, " +
					"`conductor_group` or `chassis`. KEY may have dots for nested objects. The provider distributes the members evenly " +
					"over the domains. Nodes without a value form one domain." + newMembersOnly,
			},
			"max_per_domain": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{
					int64validator.AtLeast(1),
					int64validator.AlsoRequires(path.MatchRoot("spread_by")),
				},
				MarkdownDescription: "Largest number of members in a domain. Needs `spread_by`. Default: no limit." + newMembersOnly,
			},
			"replace_members": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Members to move to other nodes: for each key of `members` any text, such as a date. A new or " +
					"changed value moves the member, and **wipes the machine**. A removed one does nothing. With " +
					"`rollout.max_unavailable` of their deployments, move at most that number of members in one apply. Needs API 1.61. " +
					"See [Move a member](#move-a-member).",
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Longest time for Ironic to reserve the nodes of new members. Default: `10m`.",
				Update: true, UpdateDescription: "Longest time to wait until nothing is deployed on the nodes of removed members. " +
					"Default: `2h`.",
			}),
			"leftovers": schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "Names of allocations that a killed run has created for the group, and that are not members. The " +
					"next apply makes them members if the group grows and keeps its name, and releases them if not. Usually null.",
			},
			"members": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "The members. Their keys are `NAME-0`, `NAME-1` and so on, where NAME is the name " +
					"that the group had when it was created or imported: a rename does not change them. The plan knows the keys, so " +
					"`for_each` works.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the allocation; null if another " +
						"client has deleted it, until the next apply."},
					"node_id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the reserved node; null if another " +
						"client has deleted the allocation, until the next apply reserves a node again."},
					"node_name": schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the reserved node; null if it has " +
						"none. If the node is renamed, the next refresh shows the new name."},
					"domain": schema.StringAttribute{Computed: true, MarkdownDescription: "Value of `spread_by` of the node; null " +
						"without `spread_by`."},
				}},
			},
		},
	}
}
