package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Ironic's interface ironic-networking configures switch ports from these keys of extra (reference/ironic.md#switch-ports).
const (
	switchportKey = "switchport" // of a port
	lagKey        = "lag"        // of a port group
	// SwitchInterface is the network interface that reads them.
	SwitchInterface = "ironic-networking"
)

// Modes of a switch port.
const (
	modeAccess = "access"
	modeTrunk  = "trunk"
	modeHybrid = "hybrid"
)

// keysOf are the keys that a switchport or a lag may have.
var keysOf = map[string][]string{
	switchportKey: {"mode", "native_vlan", "allowed_vlans", "lag_name", "mtu"},
	lagKey:        {"mode", "native_vlan", "allowed_vlans", "aggregation_mode", "mtu"},
}

// Bounds of what Ironic accepts.
const (
	maxVLAN    = 4094
	maxAllowed = 100
	maxMTU     = 9216
	maxLAGName = 255
)

// setting returns the switchport or lag of an extra; nil if there is none. Ironic treats an empty one as none.
func setting(extra map[string]any, kind string) any {
	switch value := extra[kind].(type) {
	case map[string]any:
		if len(value) == 0 {
			return nil
		}
	case string:
		if value == "" {
			return nil
		}
	}
	return extra[kind]
}

// refusedByIronic says why Ironic refuses a switchport or lag in the extra of every port of a node; "" if it does not.
func refusedByIronic(kind string, value any) string {
	all, ok := value.(map[string]any)
	if !ok {
		return kind + ` must be an object, such as { mode = "access", native_vlan = 110 }.`
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(keysOf[kind], key) {
			return fmt.Sprintf("%s knows %s, and not %q.", kind, strings.Join(keysOf[kind], ", "), key)
		}
	}
	for _, wrong := range []string{
		oneOf(all, "mode", modeAccess, modeTrunk, modeHybrid), oneOf(all, "aggregation_mode", "lacp", "static"),
		wrongVLAN("native_vlan", all["native_vlan"]), wrongVLANs(all["allowed_vlans"]), wrongSize(all),
	} {
		if wrong != "" {
			return wrong
		}
	}
	switch required := map[string]string{switchportKey: "native_vlan", lagKey: "aggregation_mode"}[kind]; {
	case all["mode"] == nil:
		return `mode is missing. Set it to "access" or "trunk".`
	case all[required] == nil:
		return required + " is missing."
	}
	return ""
}

// oneOf refuses other texts than some.
func oneOf(all map[string]any, key string, allowed ...string) string {
	text, _ := all[key].(string)
	if all[key] == nil || slices.Contains(allowed, text) {
		return ""
	}
	return fmt.Sprintf("%s is %s. Set it to %s.", key, spelled(all[key]),
		orOf(slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == modeHybrid })))
}

// orOf lists texts in quotation marks.
func orOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(quoted, " or ")
}

func wrongVLAN(key string, value any) string {
	if value == nil || isWhole(value, 1, maxVLAN) {
		return ""
	}
	if text, is := value.(string); is {
		return fmt.Sprintf("%s is the text %q. VLANs are numbers: write %s, without quotation marks.", key, text, text)
	}
	return fmt.Sprintf("%s is %s. It must be a VLAN from 1 to %d.", key, spelled(value), maxVLAN)
}

func wrongVLANs(value any) string {
	list, ok := value.([]any)
	switch {
	case value == nil:
		return ""
	case !ok:
		return fmt.Sprintf("allowed_vlans is %s. It must be a list of VLANs, such as [110, 120].", spelled(value))
	case len(list) > maxAllowed:
		return fmt.Sprintf("allowed_vlans has %d VLANs. Ironic accepts %d.", len(list), maxAllowed)
	}
	for i, vlan := range list {
		if wrong := wrongVLAN("an element of allowed_vlans", vlan); wrong != "" || vlan == nil {
			return wrongOrNull(wrong)
		}
		if slices.Contains(list[:i], vlan) {
			return fmt.Sprintf("allowed_vlans has %s twice.", spelled(vlan))
		}
	}
	return ""
}

func wrongOrNull(wrong string) string {
	return cmp.Or(wrong, "an element of allowed_vlans is null.")
}

func wrongSize(all map[string]any) string {
	name, text := all["lag_name"].(string)
	switch {
	case all["mtu"] != nil && !isWhole(all["mtu"], math.MinInt, maxMTU):
		return fmt.Sprintf("mtu is %s. It must be a whole number of at most %d.", spelled(all["mtu"]), maxMTU)
	case all["lag_name"] != nil && (!text || len(name) > maxLAGName):
		return fmt.Sprintf("lag_name must be a text of at most %d characters.", maxLAGName)
	}
	return ""
}

// isWhole reports whether a JSON value is a whole number within bounds.
func isWhole(value any, least, most int) bool {
	number, is := document.Number(value)
	return is && number == math.Trunc(number) && number >= float64(least) && number <= float64(most)
}

// spelled returns a value as JSON has it.
func spelled(value any) string {
	text, _ := json.Marshal(value) // it was decoded from JSON
	return string(text)
}

func refusal(kind string, value any) string {
	if wrong := refusedByIronic(kind, value); wrong != "" {
		return wrong
	}
	all, _ := value.(map[string]any)
	return refusedByService(kind, all)
}

// refusedByService says why the networking service does not configure what Ironic accepts; "" if it does
// (reference/ironic.md#switch-ports).
func refusedByService(kind string, all map[string]any) string {
	allowed, _ := all["allowed_vlans"].([]any)
	switch {
	case all["mode"] == modeHybrid:
		return `Ironic accepts mode "hybrid", but its networking service configures "access" and "trunk" only, so the next deployment ` +
			`would fail. Set mode = "trunk", with native_vlan for untagged frames.`
	case all["mode"] == modeAccess && all["allowed_vlans"] != nil:
		return `allowed_vlans is for mode "trunk": a port with mode "access" has native_vlan alone. Remove allowed_vlans, ` +
			`or set mode = "trunk".`
	case all["mode"] == modeTrunk && len(allowed) == 0:
		return `mode "trunk" needs allowed_vlans with at least one VLAN. Without them Ironic does not configure the ` +
			map[string]string{switchportKey: "switch port", lagKey: "bond"}[kind] + "."
	}
	return ""
}

// invalid reports whether the interface ironic-networking refuses a port that Ironic has, and with it each change of any port of the node.
func invalid(port ironic.Port) bool {
	value := setting(port.Extra, switchportKey)
	if value == nil {
		return false
	}
	all, _ := value.(map[string]any)
	return refusedByIronic(switchportKey, value) != "" || port.PXEEnabled && all["mode"] != modeAccess || !linked(port.LocalLinkConnection)
}

// linked reports whether the local_link_connection of a port names its switch port.
func linked(link map[string]any) bool { return link["switch_id"] != nil && link["port_id"] != nil }
