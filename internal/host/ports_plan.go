package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// DecidePorts refuses ports that Ironic would not accept, and warns of what happens to the switch ports and of cables that are not as
// expected. What only the configuration says is refused by CheckPorts.
func DecidePorts(w PortsWish, s PortsSeen) []decide.Notice {
	return slices.Concat(bootAlone(w, s), keptNames(w), otherNetworks(w), keptNetworks(w, s), connectedPorts(w, s), decideSwitchports(w, s),
		proveCables(w, s))
}

// CheckPorts refuses ports and groups of a configuration that do not fit each other.
func CheckPorts(w PortsWish) (notices []decide.Notice) {
	names, networks := map[string]string{}, map[string]string{}
	for _, mac := range slices.Sorted(maps.Keys(w.Ports)) {
		port := w.Ports[mac]
		if name := port.Name.V; name != "" {
			if other, twice := names[name]; twice {
				notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "name"), "Two ports with one name",
					fmt.Sprintf("Port %s has the name %q, too. Names of ports are unique in Ironic.", other, name)))
			}
			names[name] = mac
		}
		if !port.Group.Set || w.OpenGroups {
			continue
		}
		key := port.Group.V
		if _, exists := w.Groups[key]; !exists {
			notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "port_group"), "Unknown port group",
				fmt.Sprintf("port_groups has no group %q. %s", key, listOfGroups(w.Groups))))
			continue
		}
		if !port.Network.Set {
			continue // it may have the right one
		}
		if own := w.Groups[key].Network; own.Set && own.V != port.Network.V {
			notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "physical_network"), "Port group on two networks",
				fmt.Sprintf("Group %s has the physical_network %q, and this port has %q. A port has that of its group: remove "+
					"physical_network here.", key, own.V, port.Network.V)))
			continue
		}
		network, known := networks[key]
		if known && network != port.Network.V {
			notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "physical_network"), "Port group on two networks",
				fmt.Sprintf("The ports of group %s must all have the same physical_network. This port has %q, and another one has %q.", key,
					port.Network.V, network)))
		}
		networks[key] = port.Network.V
	}
	return append(notices, checkMACs(w.Groups)...)
}

func checkMACs(groups map[string]PortGroup) (notices []decide.Notice) {
	owners := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		mac := groups[key].MAC.V
		if other, twice := owners[mac]; twice && mac != "" {
			notices = append(notices, decide.Refuse(decide.At("port_groups", decide.Key(key), "mac"),
				"Two port groups with one MAC address", fmt.Sprintf("Port group %s has the MAC address %s, too.", other, mac)))
		}
		owners[mac] = key
	}
	return notices
}

func listOfGroups(groups map[string]PortGroup) string {
	if len(groups) == 0 {
		return "It is empty."
	}
	return "It has " + strings.Join(slices.Sorted(maps.Keys(groups)), ", ") + "."
}

// bootAlone refuses new ports that may boot alone in groups without standalone ports. Ironic has such ports if they were
// changed later (reference/ironic.md#port-groups).
func bootAlone(w PortsWish, s PortsSeen) (notices []decide.Notice) {
	for _, mac := range slices.Sorted(maps.Keys(w.Ports)) {
		port := w.Ports[mac]
		key := port.Group.V
		if standalone := w.Groups[key].Standalone; !s.has(mac) && standalone.Set && !standalone.V && port.PXE.V {
			notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "pxe_enabled"), "Port cannot boot alone",
				fmt.Sprintf("Port group %s has standalone_ports = false, so none of its ports can boot from the network alone. Set "+
					"pxe_enabled = false, or standalone_ports = true.", key)))
		}
	}
	return notices
}

// keptNames refuses to give a port the name of another port that keeps it, because the configuration omits its name.
func keptNames(w PortsWish) (notices []decide.Notice) {
	holders := map[string]string{}
	for mac, port := range w.Planned {
		if w.Ports[mac].Name.IsNull() && port.Name.Set {
			holders[port.Name.V] = mac
		}
	}
	for _, mac := range slices.Sorted(maps.Keys(w.Ports)) {
		name := w.Ports[mac].Name
		if other, kept := holders[name.V]; kept && name.Set {
			notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "name"), "Name of another port",
				fmt.Sprintf("Port %s has the name %q in Ironic, and keeps it, because the configuration gives it no other name. Names "+
					"of ports are unique in Ironic. Give port %s another name, too.", other, name.V, other)))
		}
	}
	return notices
}

// otherNetworks refuses ports without a physical network in a group whose other ports have one (reference/ironic.md#port-groups).
// The ports are planned, so that those whose configuration omits it have the one that Ironic has.
func otherNetworks(w PortsWish) (notices []decide.Notice) {
	networks, macs := map[string]string{}, slices.Sorted(maps.Keys(w.Planned))
	for _, mac := range macs {
		if key := w.Planned[mac].Group.V; networks[key] == "" {
			networks[key] = w.Planned[mac].Network.V
		}
	}
	for _, mac := range macs {
		port := w.Planned[mac]
		network := networks[port.Group.V]
		if !port.Group.Set || network == "" || port.Network.Unknown || port.Network.V == network {
			continue
		}
		has := "this one has none"
		if port.Network.Set {
			has = fmt.Sprintf("this one has %q", port.Network.V)
		}
		notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "physical_network"), "Port group on two networks",
			fmt.Sprintf("The ports of group %s must all have the same physical_network. Another port has %q, and %s. Set it here, too.",
				port.Group.V, network, has)))
	}
	return notices
}

// keptNetworks refuses to change the physical network of ports in a group that keeps it (reference/ironic.md#port-groups). The ports would
// leave the group, and could not come back.
func keptNetworks(w PortsWish, s PortsSeen) (notices []decide.Notice) {
	for _, mac := range slices.Sorted(maps.Keys(w.Planned)) {
		port, was := w.Planned[mac], s.Ports[mac]
		stays := port.Group.Set && port.Group == was.Group
		if !s.KeptNetworks || !stays || !port.Network.Set || !was.Network.Set || port.Network.V == was.Network.V {
			continue
		}
		notices = append(notices, decide.Refuse(decide.At("ports", decide.Key(mac), "physical_network"), "Port group keeps its network",
			fmt.Sprintf("Port group %s of host %s keeps the physical network %q of its ports. A change needs API %s, and microversion of "+
				"the provider block is older. Raise it, or leave it out.", port.Group.V, w.Label, was.Network.V, api.VersionGroupNetwork)))
	}
	return notices
}

// connectedPorts warns of ports that are removed with a VIF. Ironic deletes such a port only while the node is in maintenance.
func connectedPorts(w PortsWish, s PortsSeen) (notices []decide.Notice) {
	for _, mac := range slices.Sorted(slices.Values(w.Removed)) {
		vif := s.VIFs[mac]
		switch {
		case vif == "":
		case s.Held:
			notices = append(notices, decide.Warn(decide.At("ports"), "Port is removed with its VIF",
				fmt.Sprintf("VIF %s is attached to port %s of host %s. The node is in maintenance then, so Ironic deletes the port all "+
					"the same, and the machine loses that connection. To keep it, first remove the VIF from vifs of the "+
					"metal_deployment, or give it another port.", vif, mac, w.Label)))
		default:
			notices = append(notices, decide.Warn(decide.At("ports"), "Port has a VIF",
				fmt.Sprintf("VIF %s is attached to port %s of host %s. Unless it is detached first, Ironic refuses to delete the port, "+
					"and the apply fails. Remove the VIF from vifs of the metal_deployment, or give it another port, and apply that first.",
					vif, mac, w.Label)))
		}
	}
	return notices
}
