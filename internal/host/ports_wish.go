package host

import (
	"maps"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// PortsWish is what a configuration says of the ports and port groups of a host, for the rules that refuse some of it.
type PortsWish struct {
	Label      string               // of the host in messages
	Ports      map[string]Port      // by MAC address
	Groups     map[string]PortGroup // by key
	OpenGroups bool                 // the groups are not known yet
	Planned    map[string]Port      // the ports as they will be, with what the configuration omits
	Removed    []string             // MAC addresses of the ports that Ironic loses, because the configuration has them no more
	Inspects   bool                 // an inspection may find the switch of each port
}

// Port is what the rules for ports depend on.
type Port struct {
	Name    decide.Value[string]
	Group   decide.Value[string] // key of its group
	Network decide.Value[string] // physical_network
	PXE     decide.Value[bool]   // pxe_enabled
	Link    decide.Value[map[string]string]
	Extra   decide.Value[map[string]any]
	End     decide.Value[cabling.End] // expect_neighbor
}

// PortGroup is what the rules for port groups depend on.
type PortGroup struct {
	MAC        decide.Value[string]
	Standalone decide.Value[bool] // standalone_ports
	Network    decide.Value[string]
	Extra      decide.Value[map[string]any]
}

// PortsSeen is what Terraform has of the ports and port groups of a host, and what only Ironic knows.
type PortsSeen struct {
	State  ironic.State         // of the node; "" if there is none
	Ports  map[string]Port      // by MAC address
	Groups map[string]PortGroup // by key
	VIFs   map[string]string    // that Ironic has attached to removed ports, by MAC address
	Held   bool                 // the node is in maintenance when its ports change

	KeptNetworks bool // port groups keep the physical network of their ports, and the API version in use cannot change it

	Interface string           // network interface of the node after the apply; "" if it is not known
	Server    api.Microversion // newest of the server; 0 if it is not known

	Heard *cabling.Hearing       // in the last inspection; nil: there was none, or it is not known
	Since time.Time              // when expect_neighbor changed last; zero: it changes with this plan
	Ends  map[string]cabling.End // expect_neighbor in the state, by MAC address
	Other []Cable                // what the other hosts of this run have heard, as far as they were planned already
}

func (s PortsSeen) has(mac string) bool {
	_, is := s.Ports[mac]
	return is
}

// Cable is a cable of a host that is not as expected.
type Cable struct {
	Host, MAC string
	Want      cabling.End
	Heard     ironic.Neighbour
}

// Ends returns the ends that a configuration expects of the cables of a host, by MAC address. It leaves out those that are not known yet.
func (w PortsWish) Ends() map[string]cabling.End {
	ends := map[string]cabling.End{}
	for mac, port := range w.Ports {
		if port.End.Set {
			ends[mac] = port.End.V
		}
	}
	return ends
}

// AppliedPorts is what the configuration that was applied last contains.
type AppliedPorts struct {
	Ports   []string            // MAC addresses
	Members []string            // MAC addresses of the ports that it puts into a group
	Extra   map[string][]string // by MAC address: keys of extra
	Groups  []string            // keys; none as long as the groups of the next configuration are not known

	GroupExtra map[string][]string // by key of a group: keys of extra
}

// LostGroups returns the keys of the groups that are removed, because a configuration with the given groups does not have them any more.
func (a AppliedPorts) LostGroups(groups []string) []string {
	return slices.Sorted(slices.Values(without(a.Groups, groups)))
}

// Leaves reports whether a port leaves the group that it has, because a configuration with the given groups names none for it: the one
// before did, or the group is removed.
func (a AppliedPorts) Leaves(mac, group string, groups []string) bool {
	return slices.Contains(a.Members, mac) || slices.Contains(a.LostGroups(groups), group)
}

// Wanted returns what an apply makes of the ports and groups of a node. memberOf has the key of the group that the configuration names for
// a port. A group without a physical network in the configuration is on that of its ports.
func (a AppliedPorts) Wanted(ports map[string]ironic.PortSpec, memberOf map[string]string,
	groups map[string]ironic.PortGroupSpec,
) WantedCables {
	want := WantedCables{Ports: map[string]ironic.PortSpec{}, Members: map[string]string{}, Groups: map[string]ironic.PortGroupSpec{}}
	for key, spec := range groups {
		spec.Without = without(a.GroupExtra[key], slices.Collect(maps.Keys(spec.Extra)))
		want.Groups[key] = spec
	}
	for mac, spec := range ports {
		spec.Without = without(a.Extra[mac], slices.Collect(maps.Keys(spec.Extra)))
		want.Ports[mac] = spec
		switch key := memberOf[mac]; {
		case key != "":
			want.Members[mac] = key
			if group := want.Groups[key]; spec.PhysicalNetwork != "" && groups[key].PhysicalNetwork == "" {
				group.PhysicalNetwork = spec.PhysicalNetwork
				want.Groups[key] = group
			}
		case slices.Contains(a.Members, mac):
			want.Members[mac] = ""
		}
	}
	want.WithoutPorts = without(a.Ports, slices.Collect(maps.Keys(ports)))
	want.WithoutGroups = a.LostGroups(slices.Collect(maps.Keys(groups)))
	return want
}

func without(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(others, value) })
}

// HasBootPort reports whether one of some ports may boot the machine.
func HasBootPort(ports map[string]Port) bool {
	for _, port := range ports {
		if !port.PXE.Set || port.PXE.V {
			return true
		}
	}
	return false
}
