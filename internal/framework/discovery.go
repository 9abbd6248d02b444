package framework

import (
	"net/netip"
	"regexp"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/discovery"
)

// FilterKeys are the keys of the attribute filter of discoveries.
var FilterKeys = Keys{
	"manufacturer":  {Description: "regular expression (RE2) for the manufacturer, such as `^Dell`", Validators: []validator.String{RegularExpression}},
	"product":       {Description: "regular expression (RE2) for the product", Validators: []validator.String{RegularExpression}},
	"driver":        {Description: "regular expression (RE2) for the driver of the node", Validators: []validator.String{RegularExpression}},
	"bmc_cidr":      {Description: "network of the BMC address, such as `10.12.0.0/24`", Validators: []validator.String{CIDR}},
	"min_cpus":      {Description: "smallest number of CPUs in the inventory", Validators: []validator.String{WholeNumber}},
	"min_memory_mb": {Description: "smallest memory in the inventory, in MiB", Validators: []validator.String{WholeNumber}},
	"min_disk_gb":   {Description: "smallest size of the largest disk in the inventory, in GiB", Validators: []validator.String{WholeNumber}},
}

// TemplateKeys are the keys of the attribute name_template of discoveries.
var TemplateKeys = Keys{
	"hardware_details": {
		Required: true, Validators: []validator.String{stringvalidator.OneOf(discovery.Details()...)},
		Description: "source of the name: `hostname`, `ip` (of the first network card with a global address), `serial-number`, `boot-mac`, or `provisioning-id` (UUID of the node, which " +
			"needs a prefix or suffix). In addresses, hyphens replace dots and colons",
	},
	"prefix": {Description: "text before it"},
	"suffix": {Description: "text after it"},
}

// DiscoveryRules converts the attributes name_template, name_style and filter of a discovery. Validators have accepted the values.
func DiscoveryRules(template types.Map, style types.String, filter types.Map) discovery.Rules {
	r := discovery.Rules{
		Template: discovery.Template{
			Prefix: KeyOf(template, "prefix").ValueString(), Suffix: KeyOf(template, "suffix").ValueString(),
			Detail: discovery.Detail(KeyOf(template, "hardware_details").ValueString()), Style: discovery.StyleIronic,
		},
		OnCollision:  discovery.CollisionSkip,
		Manufacturer: compiled(KeyOf(filter, "manufacturer")), Product: compiled(KeyOf(filter, "product")), Driver: compiled(KeyOf(filter, "driver")),
		MinCPUs: whole(KeyOf(filter, "min_cpus")), MinMemoryMB: whole(KeyOf(filter, "min_memory_mb")), MinDiskGB: whole(KeyOf(filter, "min_disk_gb")),
	}
	if IsSet(style) {
		r.Template.Style = discovery.Style(style.ValueString())
	}
	if prefix, err := netip.ParsePrefix(KeyOf(filter, "bmc_cidr").ValueString()); err == nil {
		r.BMC = []netip.Prefix{prefix}
	}
	return r
}

// compiled returns a regular expression; nil if there is none.
func compiled(text types.String) *regexp.Regexp {
	if !IsSet(text) {
		return nil
	}
	expression, err := regexp.Compile(text.ValueString())
	if err != nil {
		return nil
	}
	return expression
}

// whole returns a number; 0 if there is none.
func whole(text types.String) int64 {
	n, _ := strconv.ParseInt(text.ValueString(), 10, 64)
	return n
}

// DisksValue returns the sizes of the disks of a discovered machine in GiB, by the name of the disk, which is all that each disk has. It is a
// map, because a computed list may not have computed children, and of numbers, because a machine can have dozens of disks and the
// plan shows all of them. It is null if the inventory has none.
func DisksValue(disks []discovery.Disk) types.Map {
	sizes := map[string]attr.Value{}
	for _, d := range disks {
		sizes[d.Name] = types.Int64Value(d.GiB())
	}
	if len(sizes) == 0 {
		return types.MapNull(types.Int64Type)
	}
	return types.MapValueMust(types.Int64Type, sizes)
}
