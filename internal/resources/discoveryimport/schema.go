package discoveryimport

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

// discoveredType is one machine in hosts.
var discoveredType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"id": types.StringType, "boot_mac": types.StringType, "bmc_address": types.StringType, "serial_number": types.StringType,
	"manufacturer": types.StringType, "product": types.StringType, "hostname": types.StringType, "ip": types.StringType,
	"cpus": types.Int64Type, "memory_mb": types.Int64Type, "disks_gb": types.MapType{ElemType: types.Int64Type},
}}

func (d *discoveryImport) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
	}
	choose := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Gives names to machines that Ironic has discovered, and lists them during plan. One plan and one apply can " +
			"then name, import and manage them. See the guide [Discovery](../guides/discovery.md).\n\nNeeds Ironic 24.1 with its own " +
			"auto-discovery, or ironic-inspector (`inspector_endpoint` in the provider block).",
		Attributes: map[string]schema.Attribute{
			"id": framework.IDAttribute("Same as `name`."),
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Owner label written to each node. Another resource with the same `name` takes " +
					"these machines over. A change **replaces** the resource, and the machines leave `hosts`.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(replacesIfKnown, "", "")},
				Validators:    append(framework.NameValidators(), stringvalidator.LengthAtMost(100)),
			},
			"name_template": schema.MapAttribute{
				ElementType: types.StringType, Required: true, Validators: []validator.Map{framework.TemplateKeys},
				MarkdownDescription: framework.TemplateKeys.Markdown("How the provider names new machines. A change renames no machine."),
			},
			"name_style": choose("Characters that names may have: `ironic` (default: letters, digits, `.`, `_`, `~`, `-`) or `dns` "+
				"(lower case letters, digits, hyphens; at most 63 characters).",
				stringvalidator.OneOf(string(naming.StyleIronic), string(naming.StyleDNS))),
			"filter": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Validators: []validator.Map{framework.FilterKeys},
				MarkdownDescription: framework.FilterKeys.Markdown("Rules for new machines. The resource takes a machine only if it " +
					"matches all of them. A machine whose inventory lacks the fact that a rule needs waits in `pending`. Default: it " +
					"takes every discovered machine."),
			},
			"include": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Serial numbers, MAC addresses or node UUIDs of the only machines to take, for example from a " +
					"delivery note. An empty set takes none. Machines that already have a name stay in `hosts`. An entry that matches " +
					"no machine causes no warning. This is the strongest protection against foreign machines, because Ironic does not " +
					"verify what a machine reports. Default: all machines that match `filter`.",
			},
			"names": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Names by serial number, MAC address or node UUID. " +
					"They take precedence over `name_template`, and are never changed: if a node has the name, the machine " +
					"waits in `pending`.",
			},
			"exclude": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Serial numbers, MAC addresses or node UUIDs of " +
					"machines that the resource does not take. Machines that already have a name stay in `hosts`.",
			},
			"discovered_before": choose("Time (RFC 3339), usually `plantimestamp()`. The resource takes no machine that Ironic discovers "+
				"later. Without it, the first apply fails if a machine appears after the plan. While `hosts` and `pending` stay the "+
				"same, a later time is not a difference in the plan. The clocks of Ironic and of the machine that runs Terraform must "+
				"agree. Default: no limit.", framework.Timestamp),
			"max_hosts": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Largest number of machines in `hosts`. Default: no limit.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"on_collision": choose("Effect if two machines would get the same name. `skip` (default): the machine that was discovered "+
				"first gets it, and the other waits in `pending`; both wait if their serial numbers are equal. `append-mac`: the "+
				"provider appends the end of the boot MAC address, except to a name in `names`. `error`: the plan fails.",
				stringvalidator.OneOf(string(naming.CollisionSkip), string(naming.CollisionAppendMAC), string(naming.CollisionError))),
			"hosts": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "Machines of this resource, by name. Known during plan. Facts that are missing in " +
					"the inventory are null.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id": text("UUID of the node."), "boot_mac": text("MAC address from which the machine boots."),
					"bmc_address":   text("Address of its BMC."),
					"serial_number": text("Serial number."), "manufacturer": text("Manufacturer."), "product": text("Product."),
					"hostname": text("Host name that the ramdisk reported."),
					"ip":       text("First global IP address of its network cards."), "cpus": number("Number of CPUs."),
					"memory_mb": number("Memory in MiB."),
					"disks_gb": schema.MapAttribute{
						ElementType: types.Int64Type, Computed: true, MarkdownDescription: "Sizes of its disks in GiB, rounded down, by " +
							"name, such as `/dev/sda`; after an inspection by Redfish `480GB SSD` and `480GB SSD (2)`. Other facts " +
							"about them are in `data.metal_host`.",
					},
				}},
			},
			"pending": schema.MapAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "Machines that match the rules and are not taken: the reason, by node UUID. They do not delay other " +
					"machines. The first plan warns of them, because `pending` is unknown then.",
			},
		},
	}
}

// ValidateConfig checks the name template together with names.
func (d *discoveryImport) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m discoveryModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !framework.FullyKnown(ctx, m.NameTemplate, m.Names, m.NameStyle) {
		return
	}
	rules := m.rules()
	if !slices.Contains(naming.Details(), string(rules.Template.Detail)) ||
		!slices.Contains(naming.Styles(), string(rules.Template.Style)) {
		return // validators report the latter two
	}
	if err := rules.Template.Validate(); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("name_template"), "Invalid name template", err.Error()+".")
	} else if err := rules.Validate(); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("names"), "Invalid names", err.Error()+".")
	}
}

// replacesIfKnown replaces the resource for another name. A name that is not known yet is no other one.
func replacesIfKnown(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !req.PlanValue.IsUnknown()
}
