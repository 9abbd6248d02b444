package provision

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// settingKeys are the keys of instance_info that Settings contains. metal_deployment has attributes of the same names.
var settingKeys = []string{"capabilities", keyTraits, "root_device"}

// Settings is what the instance_info of a deployed node tells besides the image, by key. It can be stored as JSON.
type Settings map[string]any

// SettingsOf returns the settings with which a node was deployed.
func SettingsOf(n *ironic.Node) Settings {
	s := Settings{}
	for _, key := range settingKeys {
		value := n.InstanceInfo[key]
		if text, is := value.(string); is { // some clients write JSON as a text
			var object map[string]any
			if json.Unmarshal([]byte(text), &object) == nil {
				value = object
			}
		}
		if list, is := value.([]any); is {
			value = slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		if value != nil {
			s[key] = value
		}
	}
	return s
}

// Contradict reports whether a deployment has another value of a key than the node. Keys that Settings does not have never
// contradict.
func (s Settings) Contradict(key string, d Deployment) bool {
	return slices.Contains(settingKeys, key) && !ironic.SameJSON(s[key], d.instanceInfo()[key])
}

// Differs reports whether an image is certainly another one than that of a node which another client has deployed. A value that only one
// of them has says nothing, and neither does a checksum in another form: Ironic converts images, and changes format and checksum then.
func (i Image) Differs(runs Image) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	numbers := func(a, b int64) bool { return a > 0 && b > 0 && a != b }
	return differ(i.URL, runs.URL) || differ(string(i.Type), string(runs.Type)) || differ(i.Kernel, runs.Kernel) || differ(i.Ramdisk, runs.Ramdisk) ||
		numbers(i.RootGB, runs.RootGB) || numbers(i.SwapMB, runs.SwapMB) ||
		(i.DiskFormat == runs.DiskFormat && otherHash(i.Checksum, runs.Checksum))
}

// otherHash reports whether two checksums are different ones of the same kind. The address of a file of checksums is none.
func otherHash(a, b string) bool {
	_, first := hex.DecodeString(a)
	_, second := hex.DecodeString(b)
	return first == nil && second == nil && len(a) == len(b) && !strings.EqualFold(a, b)
}
