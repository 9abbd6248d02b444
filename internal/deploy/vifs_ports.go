package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// overNeutron is the network interface that configures switches through Neutron.
const overNeutron = "neutron"

// VIFsAt returns the VIFs that are attached to ports.
func VIFsAt(ports map[string]ironic.Port) (ids []string) {
	for _, port := range ports {
		if id := port.VIF(); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// IsElsewhere reports whether a VIF is attached to another port than the one that it names.
func IsElsewhere(ports map[string]ironic.Port, vif VIF) bool {
	for mac, port := range ports {
		if vif.MAC != "" && mac != vif.MAC && port.VIF() == vif.ID {
			return true
		}
	}
	return false
}

// isUnlinked reports whether the network interface of a node never uses a port, because it does not know the switch. It knows that of an
// InfiniBand port, which has a client ID.
func isUnlinked(node *ironic.Node, port ironic.Port) bool {
	client := port.Extra["client-id"]
	return node.NetworkInterface == overNeutron && len(port.LocalLinkConnection) == 0 && (client == nil || client == "")
}

// refusesPort says why Ironic never attaches a VIF to the port that it names; "" if it may, or names none. ports are those of the node.
func refusesPort(node *ironic.Node, ports map[string]ironic.Port, vif VIF) string {
	port, exists := ports[vif.MAC]
	label := ironic.NodeLabel(node)
	switch {
	case vif.MAC == "":
	case !exists:
		return fmt.Sprintf("node %s has no port %s. Add it to ports of its metal_host, or remove port to let Ironic choose one",
			label, vif.MAC)
	case port.PortGroupUUID != "":
		return fmt.Sprintf("port %s of node %s is in a port group, so that Ironic connects only the group. Remove port to let Ironic "+
			"choose the group, or port_group from the port of the metal_host", vif.MAC, label)
	case isUnlinked(node, port):
		return fmt.Sprintf("port %s of node %s has no local_link_connection, without which the network interface neutron does not know "+
			"the switch. Set it in ports of the metal_host", vif.MAC, label)
	}
	return ""
}

// Unattachable says why the ports of a node cannot take all VIFs that are wanted; "" if they can, as far as that is known without Neutron.
// VIFs with the IDs of leaving are detached before. A port group counts as free, because only its own record tells whether it is
// (reference/ironic.md#vifs).
func Unattachable(node *ironic.Node, ports map[string]ironic.Port, wanted []VIF, leaving []string) string {
	attached, grouped, connected := map[string]bool{}, map[string]int{}, map[string]bool{}
	free, unlinked := 0, []string(nil)
	for _, mac := range slices.Sorted(maps.Keys(ports)) {
		port := ports[mac]
		vif, group := port.VIF(), port.PortGroupUUID
		switch {
		case isUnlinked(node, port):
			unlinked = append(unlinked, mac)
		case vif != "" && !slices.Contains(leaving, vif):
			attached[vif], connected[group] = true, true
		case group != "":
			grouped[group]++
		default:
			free++
		}
	}
	for group, members := range grouped {
		if !connected[group] { // otherwise Ironic connects the ports of the group one by one
			members = 1
		}
		free += members
	}
	needed := 0
	for _, vif := range wanted {
		if attached[vif.ID] {
			continue
		}
		if why := refusesPort(node, ports, vif); why != "" {
			return strings.ToUpper(why[:1]) + why[1:] + "."
		}
		needed++
	}
	if needed <= free {
		return ""
	}
	why := fmt.Sprintf("Node %s has %d of the %d free ports or port groups that the VIFs need. Each carries one VIF, and a port in "+
		"a port group none.", ironic.NodeLabel(node), free, needed)
	if len(unlinked) > 0 {
		why += fmt.Sprintf(" The network interface neutron uses no port without local_link_connection: %s.", strings.Join(unlinked, ", "))
	}
	return why + " Correct ports of its metal_host, or remove a VIF."
}
