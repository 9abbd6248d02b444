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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/discovery"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// discoveredType is one machine in hosts.
var discoveredType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"id": types.StringType, "boot_mac": types.StringType, "bmc_address": types.StringType, "serial_number": types.StringType,
	"manufacturer": types.StringType, "product": types.StringType, "hostname": types.StringType, "ip": types.StringType,
	"cpus": types.Int64Type, "memory_mb": types.Int64Type,
}}

// Schema describes metal_discovery_import.
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
		MarkdownDescription: "Gives names to the machines that Ironic has discovered, and makes them known during plan, so that one plan and one apply name, import and manage them. " +
			"Naming a machine changes nothing on it. Destroying this resource leaves nodes and names as they are. See the guide [Discovery](../guides/discovery.md).\n\n" +
			"Needs inventories: Ironic from 24.1 with its own auto-discovery, or ironic-inspector (`inspector_url` in the provider block).",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "The name.", PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Owner label written to each node. Another resource of the same name takes the machines over. A change leaves the machines named so far to the old name.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				Validators:    append(framework.NameValidators(), stringvalidator.LengthAtMost(100)),
			},
			"name_template": schema.SingleNestedAttribute{
				Required: true, MarkdownDescription: "How new machines are named. A change has no effect on machines that have a name.",
				Attributes: map[string]schema.Attribute{
					"hardware_details": schema.StringAttribute{
						Required: true, Validators: []validator.String{stringvalidator.OneOf(discovery.Details()...)},
						MarkdownDescription: "`hostname`, `ip` (of the first network card), `serial-number`, `boot-mac` or `provisioning-id` (the node's UUID). " +
							"In addresses, dots and colons become hyphens.",
					},
					"prefix": choose("Prepended to the generated name."),
					"suffix": choose("Appended to the generated name."),
				},
			},
			"name_style": choose("What names may look like: `ironic` (the default: letters, digits, `.`, `_`, `~`, `-`) or `dns` (lower case letters, digits, hyphens; at most 63 characters).",
				stringvalidator.OneOf(string(discovery.StyleIronic), string(discovery.StyleDNS))),
			"filter": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "Only machines that match all of these are taken.",
				Attributes: map[string]schema.Attribute{
					"manufacturer": choose("Regular expression (RE2) that the manufacturer matches.", framework.RegularExpression),
					"product":      choose("Regular expression (RE2) that the product matches.", framework.RegularExpression),
					"bmc_cidr":     choose("Network that the BMC's address is in, such as `10.12.0.0/24`.", framework.CIDR),
					"driver":       choose("Regular expression (RE2) that the driver matches.", framework.RegularExpression),
				},
			},
			"include": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Delivery note: only these machines are taken, by serial number, MAC address or node UUID; none if it is empty. This is the strongest protection against foreign machines, because Ironic does not verify what a machine reports about itself.",
			},
			"names": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Names by serial number, MAC address or node UUID. They win over the template.",
			},
			"exclude": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Machines never to take, by serial number, MAC address or node UUID.",
			},
			"discovered_before": choose("Time in RFC 3339, usually `plantimestamp()`: only machines whose discovery ended before it are taken, and all others are ignored. So machines that appear between the first plan and its apply "+
				"do not make the apply fail. The clocks of Ironic and of this machine must agree. While no new machine is taken, the plan keeps the former time and shows no difference. Default: no limit.", framework.Timestamp),
			"max_hosts": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Largest number of machines that this resource takes. Default: no limit.", Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"on_collision": choose("When two machines would have the same name: `skip` (the default: one of them, or neither if they cannot be told apart, waits in `pending`), "+
				"`append-mac` (the end of the boot MAC address is appended), or `error` (the plan fails).",
				stringvalidator.OneOf(string(discovery.CollisionSkip), string(discovery.CollisionAppendMAC), string(discovery.CollisionError))),
			"hosts": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "The machines by name. Known during plan. What was not found is null. A name once given stays.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id": text("UUID of the node."), "boot_mac": text("MAC address that it boots from."), "bmc_address": text("Address of its BMC."),
					"serial_number": text("Serial number."), "manufacturer": text("Manufacturer."), "product": text("Product."), "hostname": text("Host name of the ramdisk."),
					"ip": text("Address of the first network card."), "cpus": number("Number of CPUs."), "memory_mb": number("Memory in MiB."),
				}},
			},
			"pending": schema.MapAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "Machines that are not taken though the filter lets them pass: the reason by node UUID. None of them holds up the others. Not known in the first plan, which warns of them.",
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
	rules, diags := m.rules(ctx)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() || !slices.Contains(discovery.Details(), string(rules.Template.Detail)) || !slices.Contains(discovery.Styles(), string(rules.Template.Style)) {
		return // validators report the latter two
	}
	if err := rules.Template.Validate(); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("name_template"), "Invalid name template", err.Error()+".")
	} else if err := rules.Validate(); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("names"), "Invalid names", err.Error()+".")
	}
}
