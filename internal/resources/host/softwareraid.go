package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

// physicalDisks returns the disks of a volume: names, and hints where a text is a JSON object.
func physicalDisks(set types.Set) (all []any) {
	for _, text := range framework.StringSet(set) {
		var hint map[string]any
		if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &hint) == nil {
			all = append(all, hint)
		} else {
			all = append(all, text)
		}
	}
	return all
}

// softwareLevels are the levels of volumes that Ironic's agent makes.
var softwareLevels = []string{"0", "1", "1+0", "5", "6"}

// validateSoftwareRAID refuses volumes that Ironic's agent refuses: it validates them after delete_existing has deleted what there was
// (reference/values.md#software-raid).
func validateSoftwareRAID(byAgent bool, volumes []volumeModel, diags *diag.Diagnostics) {
	made := func(v volumeModel) bool { return v.Controller.ValueString() == hosts.SoftwareRAID }
	if !byAgent && !slices.ContainsFunc(volumes, made) {
		return
	}
	at := path.Root("raid").AtName("volumes")
	refuse := func(at path.Path, detail string) {
		diags.AddAttributeError(at, "Software RAID that no agent makes", detail)
	}
	if len(volumes) > 2 {
		refuse(at, fmt.Sprintf("Ironic's agent makes one or two software volumes, and these are %d.", len(volumes)))
	}
	rest := 0
	for i, v := range volumes {
		at := at.AtListIndex(i)
		level := v.Level.ValueString()
		if v.SizeGB.ValueString() == hosts.MaxSize {
			rest++
		}
		switch {
		case i == 0 && !v.Level.IsUnknown() && level != "1":
			refuse(at.AtName("level"), "The first software volume must have level 1. Put it first, or use level = \"1\".")
		case !v.Level.IsUnknown() && !slices.Contains(softwareLevels, level):
			refuse(at.AtName("level"), fmt.Sprintf("Ironic's agent makes no level %s, only %s.", level, strings.Join(softwareLevels, ", ")))
		}
		if !v.Controller.IsUnknown() && !made(v) {
			refuse(at.AtName("controller"), "With the RAID interface agent, each volume needs controller = \"software\".")
		}
		if fault := softwareDisksFault(v.PhysicalDisks); fault != "" {
			refuse(at.AtName("physical_disks"), fault)
		}
	}
	if rest > 1 {
		refuse(at, "Only one software volume can have size_gb = \"MAX\". Give the others a number of GiB.")
	}
}

func softwareDisksFault(set types.Set) string {
	if !framework.IsSet(set) || slices.ContainsFunc(set.Elements(), func(v attr.Value) bool { return v.IsUnknown() }) {
		return ""
	}
	all := physicalDisks(set)
	if len(all) < 2 {
		return "A software volume needs at least two disks, or no physical_disks for all disks."
	}
	for _, disk := range all {
		hint, is := disk.(map[string]any)
		if !is {
			return fmt.Sprintf("Ironic's agent takes hints of disks as in root_device, and no names. Write each as JSON, such as "+
				"jsonencode({ name = %q }).", disk)
		}
		if fault := disks.HintOf(hint).Fault(); fault != "" || hint[disks.KeyVolume] != nil {
			return fmt.Sprintf("A hint selects no disk: %s.", cmp.Or(fault, "volume_name is for skip_block_devices alone"))
		}
	}
	return ""
}
