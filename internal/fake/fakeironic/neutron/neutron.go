// Package neutron has the ports of a Neutron, as far as Ironic reads and changes them: networks, MAC addresses and bindings.
package neutron

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Port is a port of Neutron, which Ironic calls a VIF.
type Port struct {
	ID, Network     string
	PhysicalNetwork string // of the network
	MAC             string
	Host            string // the UUID of the node that it is bound to; "" if it is not bound
	Failed          bool   // the driver of the switch has refused the binding
}

// Neutron has ports by their IDs. A nil Neutron has every port that it is asked for, and accepts everything.
type Neutron struct {
	ports map[string]*Port
	made  int
}

// Add creates a port and returns its ID. It is not bound, and its MAC address is one of Neutron's.
func (n *Neutron) Add(network, physicalNetwork string) (id string) {
	if n.ports == nil {
		n.ports = map[string]*Port{}
	}
	id = api.NewUUID()
	n.ports[id] = &Port{ID: id, Network: network, PhysicalNetwork: physicalNetwork, MAC: n.newMAC()}
	return id
}

func (n *Neutron) newMAC() string {
	n.made++
	return fmt.Sprintf("fa:16:3e:00:%02x:%02x", n.made>>8&0xff, n.made&0xff)
}

// Delete removes a port, bound or not.
func (n *Neutron) Delete(id string) { delete(n.ports, id) }

// Port returns a copy of a port.
func (n *Neutron) Port(id string) (p Port, exists bool) {
	if n == nil || n.ports[id] == nil {
		return Port{}, false
	}
	return *n.ports[id], true
}

// Has reports whether a port exists.
func (n *Neutron) Has(id string) bool { return n == nil || n.ports[id] != nil }

// SetMAC gives a port a MAC address, and reports whether it may: another port of the network has it, or the port is bound.
func (n *Neutron) SetMAC(id, mac string) bool {
	if n == nil {
		return true
	}
	p := n.ports[id]
	if p == nil || p.Host != "" && p.MAC != mac {
		return false
	}
	for _, other := range n.ports {
		if other != p && other.Network == p.Network && other.MAC == mac {
			return false
		}
	}
	p.MAC = mac
	return true
}

// Bind binds a port that exists to a node. refused: the driver of the switch does not do it.
func (n *Neutron) Bind(id, node string, refused bool) {
	if n != nil && n.ports[id] != nil {
		n.ports[id].Host, n.ports[id].Failed = node, refused
	}
}

// Unbind unbinds a port, if it exists, and gives it another MAC address.
func (n *Neutron) Unbind(id string) {
	if n != nil && n.ports[id] != nil {
		n.ports[id].Host, n.ports[id].Failed, n.ports[id].MAC = "", false, n.newMAC()
	}
}
