package framework

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

// FilterKeys are the keys of the attribute filter of discoveries.
var FilterKeys = Keys{
	"manufacturer": {
		Description: "regular expression (RE2) for the manufacturer, such as `^Dell`",
		Validators:  []validator.String{RegularExpression},
	},
	"product": {Description: "regular expression (RE2) for the product", Validators: []validator.String{RegularExpression}},
	"driver": {
		Description: "regular expression (RE2) for the driver of the node",
		Validators:  []validator.String{RegularExpression},
	},
	"bmc_cidr":      {Description: "network of the BMC address, such as `10.12.0.0/24`", Validators: []validator.String{cidr}},
	"min_cpus":      {Description: "smallest number of CPUs in the inventory", Validators: []validator.String{WholeNumber}},
	"min_memory_mb": {Description: "smallest memory in the inventory, in MiB", Validators: []validator.String{WholeNumber}},
	"min_disk_gb": {
		Description: "smallest size of the largest disk in the inventory, in GiB",
		Validators:  []validator.String{WholeNumber},
	},
}

// TemplateKeys are the keys of the attribute name_template of discoveries.
var TemplateKeys = Keys{
	"hardware_details": {
		Required: true, Validators: []validator.String{stringvalidator.OneOf(naming.Details()...)},
		Description: "source of the name: `hostname`, `ip` (of the first network card with a global address), `serial-number`, " +
			"`boot-mac`, or `provisioning-id` (UUID of the node, which needs a prefix or suffix). In addresses, hyphens replace " +
			"dots and colons",
	},
	"prefix": {Description: "text before it"},
	"suffix": {Description: "text after it"},
}

// DiscoveryRules converts the attributes name_template, name_style and filter of a discovery. Validators have accepted the values.
func DiscoveryRules(template types.Map, style types.String, filter types.Map) naming.Rules {
	r := naming.Rules{
		Template: naming.Template{
			Prefix: KeyOf(template, "prefix").ValueString(), Suffix: KeyOf(template, "suffix").ValueString(),
			Detail: naming.Detail(KeyOf(template, "hardware_details").ValueString()), Style: naming.StyleIronic,
		},
		OnCollision:  naming.CollisionSkip,
		Manufacturer: pattern(KeyOf(filter, "manufacturer")), Product: pattern(KeyOf(filter, "product")),
		Driver:  pattern(KeyOf(filter, "driver")),
		MinCPUs: whole(KeyOf(filter, "min_cpus")), MinMemoryMB: whole(KeyOf(filter, "min_memory_mb")),
		MinDiskGB: whole(KeyOf(filter, "min_disk_gb")),
	}
	if IsSet(style) {
		r.Template.Style = naming.Style(style.ValueString())
	}
	if prefix, err := netip.ParsePrefix(KeyOf(filter, "bmc_cidr").ValueString()); err == nil {
		r.BMC = []netip.Prefix{prefix}
	}
	return r
}

// whole returns a number; 0 if there is none.
func whole(text types.String) int64 {
	n, _ := strconv.ParseInt(text.ValueString(), 10, 64)
	return n
}

// DiscoveredFacts returns the facts of a discovered machine, by the attribute that shows them. Those that the inspection has not found are
// null.
func DiscoveredFacts(h naming.Host) map[string]attr.Value {
	return map[string]attr.Value{
		"boot_mac": OrNull(h.BootMAC()), "bmc_address": OrNull(h.BMCAddress), "serial_number": OrNull(h.Serial),
		"manufacturer": OrNull(h.Manufacturer), "product": OrNull(h.Product), "hostname": OrNull(h.Hostname), "ip": OrNull(h.IP()),
		"cpus": Positive(h.CPUs), "memory_mb": Positive(h.MemoryMB), "disks_gb": disksValue(h.Disks),
	}
}

// disksValue returns the sizes of the disks of a discovered machine in GiB, by the name of the disk, which is all that each disk has: a
// second disk of the same name gets a number. It is a map, because a computed list may not have computed children, and of numbers, because
// a machine can have dozens of disks and the plan shows all of them. It is null if the inventory has none.
func disksValue(disks []naming.Disk) types.Map {
	sizes := map[string]attr.Value{}
	for _, d := range disks {
		key := d.Name
		for n := 2; sizes[key] != nil; n++ {
			key = fmt.Sprintf("%s (%d)", d.Name, n)
		}
		sizes[key] = types.Int64Value(d.GiB())
	}
	if len(sizes) == 0 {
		return types.MapNull(types.Int64Type)
	}
	return types.MapValueMust(types.Int64Type, sizes)
}

// Keys are the keys of an attribute that looks like an object and is a map of strings. Terraform drops unknown keys of an object without a
// word, so that a typing error removes a rule; of a map it drops none (reference/terraform.md#unknown-keys-of-an-object).
type Keys map[string]Key

// Key is one of them.
type Key struct {
	Description string // in Markdown
	Required    bool
	Validators  []validator.String
}

// Markdown returns a description of the attribute with its keys.
func (k Keys) Markdown(description string) string {
	var text strings.Builder
	text.WriteString(description + " An unknown key is an error.\n")
	for _, key := range slices.Sorted(maps.Keys(k)) {
		required := ""
		if k[key].Required {
			required = " (required)"
		}
		fmt.Fprintf(&text, "\n  - `%s`%s: %s", key, required, k[key].Description)
	}
	return text.String()
}

// Description returns the rule.
func (k Keys) Description(context.Context) string {
	return "keys must be among " + strings.Join(slices.Sorted(maps.Keys(k)), ", ")
}

// MarkdownDescription returns the rule.
func (k Keys) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

// ValidateMap adds an error for each unknown key, for each required key that is missing, and for each value that a key does not accept.
func (k Keys) ValidateMap(ctx context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	if !IsSet(req.ConfigValue) {
		return
	}
	elements := req.ConfigValue.Elements()
	for _, key := range slices.Sorted(maps.Keys(elements)) {
		known, exists := k[key]
		if !exists {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Unknown key", fmt.Sprintf("%s has no key %q. It has %s.", req.Path,
				key, strings.Join(slices.Sorted(maps.Keys(k)), ", ")))
			continue
		}
		value, _ := elements[key].(types.String)
		for _, v := range known.Validators {
			one := &validator.StringResponse{}
			v.ValidateString(ctx, validator.StringRequest{
				Path: req.Path.AtMapKey(key), PathExpression: req.PathExpression.AtMapKey(key),
				Config: req.Config, ConfigValue: value,
			}, one)
			resp.Diagnostics.Append(one.Diagnostics...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if value, exists := elements[key]; k[key].Required && (!exists || value.IsNull()) {
			resp.Diagnostics.AddAttributeError(req.Path, "Missing key", fmt.Sprintf("%s needs %s.", req.Path, key))
		}
	}
}

// KeyOf returns the value of a key; null if the map does not have it.
func KeyOf(m types.Map, key string) types.String {
	value, ok := m.Elements()[key].(types.String)
	if !ok {
		return types.StringNull()
	}
	return value
}
