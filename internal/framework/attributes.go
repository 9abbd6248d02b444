package framework

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// require is the attribute require of the resources that reserve nodes.
type require struct {
	MinCPUs        types.Int64  `tfsdk:"min_cpus"`
	MinMemoryMB    types.Int64  `tfsdk:"min_memory_mb"`
	MinDiskGB      types.Int64  `tfsdk:"min_disk_gb"`
	DiskType       types.String `tfsdk:"disk_type"`
	MinNICMbps     types.Int64  `tfsdk:"min_nic_mbps"`
	CPUArch        types.String `tfsdk:"cpu_arch"`
	Manufacturer   types.String `tfsdk:"manufacturer"`
	Product        types.String `tfsdk:"product"`
	Capabilities   types.Map    `tfsdk:"capabilities"`
	ConductorGroup types.String `tfsdk:"conductor_group"`
	Exclude        types.Set    `tfsdk:"exclude"`
	Cabling        types.Bool   `tfsdk:"cabling"`
	AsExpected     types.Bool   `tfsdk:"hardware_as_expected"`
	Qualified      types.String `tfsdk:"qualified_within"`
}

// requirements returns what the attribute require demands; nil if it is null or unknown.
func requirements(ctx context.Context, value types.Object) *allocate.Requirements {
	r := Decoded[require](ctx, value)
	if r == nil {
		return nil
	}
	return &allocate.Requirements{
		MinCPUs: r.MinCPUs.ValueInt64(), MinMemoryMB: r.MinMemoryMB.ValueInt64(), MinDiskGB: r.MinDiskGB.ValueInt64(),
		DiskType: allocate.DiskType(r.DiskType.ValueString()), MinNICMbps: r.MinNICMbps.ValueInt64(), CPUArch: r.CPUArch.ValueString(),
		Manufacturer: pattern(r.Manufacturer), Product: pattern(r.Product), Capabilities: StringMap(r.Capabilities),
		ConductorGroup: r.ConductorGroup.ValueStringPointer(), Exclude: StringSet(r.Exclude), Cabling: r.Cabling.ValueBool(),
		HardwareAsExpected: r.AsExpected.ValueBool(), QualifiedWithin: r.Qualified.ValueString(),
	}
}

// pattern compiles a regular expression that a validator has accepted; nil for none.
func pattern(text types.String) *regexp.Regexp {
	expression, err := regexp.Compile(text.ValueString())
	if err != nil || !IsSet(text) {
		return nil
	}
	return expression
}

// RequireFeatures returns the parts of the attribute require that need an API version.
func RequireFeatures(value types.Object) (features []Feature) {
	if !IsSet(value) {
		return nil
	}
	for _, name := range []string{"disk_type", "min_nic_mbps", "cabling", "hardware_as_expected"} {
		features = append(features, Feature{
			Used: !value.Attributes()[name].IsNull(), Since: api.VersionInventory,
			Name: path.Root("require").AtName(name),
		})
	}
	return features
}

// RequireAttribute is the attribute require. hardware is the link to the page that explains it.
func RequireAttribute(hardware string, validators ...validator.Object) schema.Attribute {
	least := func(description string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, MarkdownDescription: description,
			Validators: []validator.Int64{int64validator.AtLeast(1)},
		}
	}
	text := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	return schema.SingleNestedAttribute{
		Optional: true, Validators: validators,
		MarkdownDescription: "Requirements that Ironic cannot check: the provider selects the nodes that meet them, and sends these as " +
			"candidates. Once a node is reserved, a change has no effect on it. If a required fact about a node is not known, the node " +
			"does not fit. See [Hardware](" + hardware + ").",
		Attributes: map[string]schema.Attribute{
			"min_cpus":      least("Smallest number of CPUs, as Ironic counts them."),
			"min_memory_mb": least("Smallest memory, in MiB."),
			"min_disk_gb":   least("Smallest size of the largest disk, in GiB. With `disk_type`, of the largest disk of that type."),
			"disk_type": text("Type that one disk must have: `hdd`, `ssd` (NVMe included) or `nvme`. Needs API 1.81.",
				stringvalidator.OneOf(allocate.DiskTypes()...)),
			"min_nic_mbps": least("Smallest speed of the fastest network card, in Mbit/s. The inspection sees the speed of cards with " +
				"a link. Needs API 1.81."),
			"cpu_arch": text("Architecture, such as `x86_64`.", stringvalidator.LengthAtLeast(1)),
			"manufacturer": text("Regular expression (RE2) for the manufacturer, such as `^Dell`.", RegularExpression,
				stringvalidator.LengthAtLeast(1)),
			"product": text("Regular expression (RE2) for the product.", RegularExpression, stringvalidator.LengthAtLeast(1)),
			"capabilities": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Entries that `properties.capabilities` of the node " +
					"must have, such as `{ boot_mode = \"uefi\" }`.",
				Validators: []validator.Map{mapvalidator.KeysAre(Capability), mapvalidator.ValueStringsAre(Capability)},
			},
			"conductor_group": text("Conductor group of the node; `\"\"` for nodes without one."),
			"exclude": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Names or UUIDs of nodes that do not fit.",
				Validators: []validator.Set{setvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
			},
			"cabling": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether the cables must be [proved](../guides/cabling.md). Needs API 1.81.",
			},
			"hardware_as_expected": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether the last inspection must have found what `expect_hardware` of the `metal_host` demands. " +
					"Needs API 1.81.",
			},
			"qualified_within": text("Greatest age of the last passed `qualification`, such as `90d`.", Age),
		},
	}
}

// SecretVersion is the attribute beside a write-only one that says when to send its value again. It is a text, so that it may be the
// version of a secret in a vault, or a date. also is what else a change does, such as " and rebuilds the node".
func SecretVersion(secret, also string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "Required with `" + secret + "`: a number or any text. A change sends `" + secret + "` again" + also + ".",
		Validators:          []validator.String{NotBlank, stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName(secret))},
	}
}

// Values of power_state.
const (
	PowerOn  = "on"
	PowerOff = "off"
)

// PowerOffModeAttribute is power_off_mode, which needs API 1.27.
func PowerOffModeAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description,
		Validators: []validator.String{stringvalidator.OneOf(string(machine.OffHard), string(machine.OffSoft),
			string(machine.OffGraceful))},
	}
}

// TimeoutsAttribute returns the attribute timeouts. Its error for a wrong duration shows the format.
func TimeoutsAttribute(ctx context.Context, opts timeouts.Opts) schema.Attribute {
	nested, _ := timeouts.Attributes(ctx, opts).(schema.SingleNestedAttribute)
	for name, attribute := range nested.Attributes {
		limit, _ := attribute.(schema.StringAttribute)
		limit.Validators = []validator.String{NotNegativeDuration}
		nested.Attributes[name] = limit
	}
	return nested
}
