package framework

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

// words checks the entries of a map of texts that Ironic's conductor or agent would refuse when it deploys.
type words struct {
	must  string
	check func(at path.Path, key, text string, diags *diag.Diagnostics)
}

// Description returns the rule.
func (w words) Description(context.Context) string { return w.must }

// MarkdownDescription returns the rule.
func (w words) MarkdownDescription(context.Context) string { return w.must }

// ValidateMap adds an error for each known entry that is refused.
func (w words) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	known := StringMap(req.ConfigValue)
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if IsSet(req.ConfigValue.Elements()[key]) {
			w.check(req.Path.AtMapKey(key), key, known[key], &resp.Diagnostics)
		}
	}
}

// RootDevice accepts hints that Ironic's parser accepts (reference/ironic.md#hints-of-disks).
func RootDevice() validator.Map {
	return words{"must have hints of disks", func(at path.Path, key, text string, diags *diag.Diagnostics) {
		fault := disks.Hint{key: text}.Fault()
		if key == disks.KeyVolume {
			fault = "volume_name is for skip_block_devices alone: to deploy on a RAID volume, set root = true of the volume"
		}
		if fault != "" {
			diags.AddAttributeError(at, "Hint that selects no disk", fmt.Sprintf("Ironic refuses to deploy with it: %s.", fault))
		}
	}}
}

// capabilityValues are the values that Ironic accepts of the capabilities that it knows (reference/values.md#what-a-plan-refuses).
var capabilityValues = map[string][]string{
	"boot_mode": {"bios", "uefi"}, "boot_option": {"kickstart", "local", "netboot", "ramdisk"}, "disk_label": {"gpt", "msdos"},
	"secure_boot": {"false", "true"}, "trusted_boot": {"false", "true"},
}

// sameCapability are values of people for those of Ironic, in lower case.
var sameCapability = map[string]string{
	"efi": "uefi", "legacy": "bios", "mbr": "msdos", "dos": "msdos", "yes": "true", "on": "true", "1": "true", "no": "false",
	"off": "false", "0": "false",
}

// KnownCapabilities accepts values that Ironic accepts.
func KnownCapabilities() validator.Map {
	return words{"must have values that Ironic knows", func(at path.Path, key, text string, diags *diag.Diagnostics) {
		values, plain := capabilityValues[key], strings.ToLower(strings.TrimSpace(text))
		if len(values) == 0 || slices.Contains(values, text) {
			return
		}
		fault := fmt.Sprintf("%s is %q, and must be one of %s.", key, text, strings.Join(values, ", "))
		if same := sameCapability[plain]; slices.Contains(values, same) {
			plain = same
		}
		if slices.Contains(values, plain) {
			fault += fmt.Sprintf(" Write %q.", plain)
		}
		diags.AddAttributeError(at, "Capability without meaning", "Ironic refuses to deploy with it: "+fault)
	}}
}
