package conductor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// softwareDefect returns what the agent's validate_configuration refuses in target_raid_config, in its words; "" if it accepts it.
func (n *Node) softwareDefect() string {
	volumes, _ := api.Object(n.Fields["target_raid_config"])["logical_disks"].([]any)
	var all []string
	refuse := func(fault string) { all = append(all, fault) }
	if len(volumes) == 0 {
		return ""
	}
	if len(volumes) > 2 {
		refuse("Software RAID configuration requires one or two logical disks")
	}
	rest := 0
	for _, item := range volumes {
		volume := api.Object(item)
		if volume["controller"] != "software" {
			refuse("Software RAID configuration requires all logical disks to have 'controller'='software'")
		}
		if volume["size_gb"] == "MAX" {
			rest++
		}
		disks, given := volume["physical_disks"].([]any)
		if given && len(disks) < 2 {
			refuse("The physical_disks parameter for software RAID must be a list with at least 2 items, each specifying a disk in the " +
				"device hints format")
		}
		if slices.ContainsFunc(disks, func(disk any) bool { _, is := disk.(map[string]any); return !is }) {
			refuse("The physical_disks parameter for software RAID must be a list of device hints (dictionaries)")
		}
	}
	if api.Object(volumes[0])["raid_level"] != "1" {
		refuse("Software RAID Configuration requires RAID-1 for the first logical disk")
	}
	if len(volumes) == 2 && rest == 2 {
		refuse("Software RAID can have only one RAID device with size 'MAX'")
	}
	if level := api.Text(api.Object(volumes[len(volumes)-1])["raid_level"]); !slices.Contains([]string{"0", "1", "1+0", "5", "6"}, level) {
		refuse("Software RAID configuration does not support RAID level " + level)
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("Could not validate Software RAID config for %s: %s", n.Str("uuid"), strings.Join(all, "; "))
}
