package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Summaries of notices.
const (
	wrongSwitchport = "Switch port cannot be configured"
	wrongBond       = "Bond cannot be configured"
)

// decideSwitchports refuses switch ports that Ironic would not configure, and says what it does to those of a machine that runs. Only the
// network interface ironic-networking reads them: with another one they are the user's own data.
func decideSwitchports(w PortsWish, s PortsSeen) []decide.Notice {
	if !w.Switches() {
		return liveChanges(w, s)
	}
	if unread := unreadBy(w, s); unread != "" {
		if !switchesChange(w, s) {
			return nil
		}
		return []decide.Notice{decide.Warn(decide.At("ports"), "Switch ports are not configured", unread)}
	}
	if refused := slices.Concat(checkSwitchports(w), checkBonds(w)); len(refused) > 0 {
		return refused
	}
	return slices.Concat(ignoredSettings(w, s), liveChanges(w, s))
}

// Switches reports whether a configuration has switch ports or bonds of switches.
func (w PortsWish) Switches() bool {
	for _, port := range w.Ports {
		if setting(port.Extra.V, switchportKey) != nil {
			return true
		}
	}
	for _, group := range w.Groups {
		if setting(group.Extra.V, lagKey) != nil {
			return true
		}
	}
	return false
}

// HasSwitches reports whether a configuration or the state before it has switch ports, so that the network interface of the node matters.
func (s PortsSeen) HasSwitches(w PortsWish) bool {
	for _, port := range s.Ports {
		if setting(port.Extra.V, switchportKey) != nil {
			return true
		}
	}
	return w.Switches()
}

// unreadBy says why nothing reads the switch ports; "" if Ironic does, or it is not known.
func unreadBy(w PortsWish, s PortsSeen) string {
	switch {
	case s.Server != 0 && s.Server < api.FirstWithSwitchPorts:
		return fmt.Sprintf("Ironic configures switch ports since version 35, with the network interface %s. The newest API of this "+
			"Ironic is %s: it stores extra.switchport and extra.lag of host %s, and does nothing with them.",
			SwitchInterface, s.Server, w.Label)
	case s.Interface != "" && s.Interface != SwitchInterface:
		return fmt.Sprintf("The network interface of host %s is %s. Ironic stores extra.switchport and extra.lag, and does nothing with "+
			"them. To let Ironic configure the switch, set hardware_interfaces = { network = %q }.",
			w.Label, s.Interface, SwitchInterface)
	}
	return ""
}

func switchesChange(w PortsWish, s PortsSeen) bool {
	for mac, port := range w.Planned {
		if !port.Extra.Unknown && spelled(setting(port.Extra.V, switchportKey)) != spelled(setting(s.Ports[mac].Extra.V, switchportKey)) {
			return true
		}
	}
	for key, group := range w.Groups {
		if !group.Extra.Unknown && spelled(setting(group.Extra.V, lagKey)) != spelled(setting(s.Groups[key].Extra.V, lagKey)) {
			return true
		}
	}
	return false
}

// checkSwitchports refuses switch ports that Ironic or its networking service refuses.
func checkSwitchports(w PortsWish) (notices []decide.Notice) {
	for _, mac := range slices.Sorted(maps.Keys(w.Ports)) {
		asked, planned := w.Ports[mac], w.Planned[mac]
		value := setting(asked.Extra.V, switchportKey)
		if value == nil {
			continue
		}
		at, wrong := decide.At("ports", decide.Key(mac), "extra_json"), refusal(switchportKey, value)
		all, _ := value.(map[string]any)
		boots := planned.PXE.Set && planned.PXE.V || asked.PXE.IsNull() && planned.PXE.Unknown
		switch {
		case wrong != "":
		case boots && all["mode"] != modeAccess:
			at, wrong = decide.At("ports", decide.Key(mac), "pxe_enabled"), fmt.Sprintf("Its mode is %q, and a port that may boot the "+
				"machine needs mode \"access\". Set pxe_enabled = false if another port boots it, or mode = \"access\".", all["mode"])
		case !planned.Link.Unknown && !w.Inspects && (planned.Link.V["switch_id"] == "" || planned.Link.V["port_id"] == ""):
			at, wrong = decide.At("ports", decide.Key(mac), "local_link_connection"), "Ironic does not know to which switch port it is "+
				"connected. Set local_link_connection with switch_id and port_id. An inspection finds them if the switch sends LLDP."
		}
		if wrong != "" {
			notices = append(notices, decide.Refuse(at, wrongSwitchport, fmt.Sprintf("Port %s of host %s: %s", mac, w.Label, wrong)))
		}
	}
	return notices
}

// checkBonds refuses bonds that Ironic refuses: their settings, and ports without a switch port.
func checkBonds(w PortsWish) (notices []decide.Notice) {
	for _, key := range slices.Sorted(maps.Keys(w.Groups)) {
		value := setting(w.Groups[key].Extra.V, lagKey)
		if value == nil {
			continue
		}
		wrong := refusal(lagKey, value)
		if wrong == "" {
			wrong = wrongMembers(w, key)
		}
		if wrong != "" {
			notices = append(notices, decide.Refuse(decide.At("port_groups", decide.Key(key), "extra_json"), wrongBond,
				fmt.Sprintf("Port group %s of host %s: %s", key, w.Label, wrong)))
		}
	}
	return notices
}

// wrongMembers refuses a bond without ports, and one whose ports have no switch port.
func wrongMembers(w PortsWish, key string) string {
	members := 0
	for _, mac := range slices.Sorted(maps.Keys(w.Planned)) {
		port := w.Planned[mac]
		if port.Group.Unknown {
			return ""
		}
		if port.Group.V != key {
			continue
		}
		members++
		if extra := w.Ports[mac].Extra; !extra.Unknown && setting(extra.V, switchportKey) == nil {
			return fmt.Sprintf("lag needs a switchport in extra of each port of the group, and port %s has none.", mac)
		}
	}
	if members == 0 && len(w.Ports) == len(w.Planned) {
		return "lag needs at least one port in the group. Set port_group of its ports."
	}
	return ""
}

// ignoredSettings warns of what Ironic stores and does not use, when it changes.
func ignoredSettings(w PortsWish, s PortsSeen) (notices []decide.Notice) {
	found := map[string]bool{}
	for _, port := range w.Ports {
		all, _ := setting(port.Extra.V, switchportKey).(map[string]any)
		found["mtu"], found["lag_name"] = found["mtu"] || all["mtu"] != nil, found["lag_name"] || all["lag_name"] != nil
	}
	for _, group := range w.Groups {
		found[lagKey] = found[lagKey] || setting(group.Extra.V, lagKey) != nil
	}
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	if len(found) == 0 || !switchesChange(w, s) {
		return nil
	}
	return []decide.Notice{decide.Warn(decide.At("ports"), "Setting without effect", fmt.Sprintf("Ironic stores %s of host %s. Up to "+
		"version 39 it configures no bonds and no MTU on switches: configure those on the switch.",
		strings.Join(slices.Sorted(maps.Keys(found)), ", "), w.Label))}
}

// liveChanges warns that Ironic configures the switch ports of a machine that runs.
func liveChanges(w PortsWish, s PortsSeen) []decide.Notice {
	if s.Interface != SwitchInterface || !states.Occupied(s.State) {
		return nil
	}
	var changes []string
	for _, mac := range slices.Sorted(maps.Keys(w.Planned)) {
		port, was := w.Planned[mac], s.Ports[mac]
		before, after := vlansOf(was.Extra.V), vlansOf(port.Extra.V)
		if port.Extra.Unknown {
			after = "VLANs that are not known yet"
		}
		switch {
		case before != after:
			changes = append(changes, fmt.Sprintf("port %s from %s to %s", mac, before, after))
		case after != noVLANs && s.has(mac) && !decide.Same(port.Link, was.Link):
			changes = append(changes, fmt.Sprintf("port %s with %s to another port of a switch", mac, after))
		}
	}
	for _, mac := range slices.Sorted(slices.Values(w.Removed)) {
		if before := vlansOf(s.Ports[mac].Extra.V); before != noVLANs {
			changes = append(changes, fmt.Sprintf("port %s, which is removed, from %s to %s", mac, before, noVLANs))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return []decide.Notice{decide.Warn(decide.At("ports"), "VLANs of a running machine change",
		fmt.Sprintf("The apply changes the VLANs of the running machine of host %s now: %s. Ironic configures the switch while the "+
			"machine runs, and does not restart it. Connections over a VLAN that it loses end.", w.Label, strings.Join(changes, "; ")))}
}

const noVLANs = "no VLANs of Ironic"

// vlansOf describes the switchport of an extra.
func vlansOf(extra map[string]any) string {
	all, _ := setting(extra, switchportKey).(map[string]any)
	if all == nil {
		return noVLANs
	}
	text := fmt.Sprintf("%v VLAN %s", all["mode"], spelled(all["native_vlan"]))
	if allowed := all["allowed_vlans"]; allowed != nil {
		text += " with " + strings.Trim(spelled(allowed), "[]")
	}
	return text
}
