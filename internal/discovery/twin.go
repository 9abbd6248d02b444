package discovery

import (
	"cmp"
	"slices"
)

// A machine can have several nodes: its agent repeats the request that creates one, and Ironic may discover a known machine
// again. Only one of the nodes gets a name.

// twin is the node that represents the machine of another node.
type twin struct {
	of  Host
	mac string // the MAC address that both have; empty: both have the same serial number and BMC
}

// reason returns why the discovery does not take the host.
func (t twin) reason(h Host) string {
	if name := cmp.Or(t.of.Name, t.of.OwnerName); name != "" && t.mac != "" && hasPorts(h) {
		return "its MAC address " + t.mac + " belongs to " + name
	}
	return "duplicate of " + t.of.ID
}

// machine has the facts that identify the machine of a host.
type machine struct {
	Host
	// own has the addresses of the ports, which are unique in Ironic, and the boot address. If another node of the machine has the
	// ports, own has all addresses of the inventory.
	own   []string
	all   []string
	board string // serial number and BMC address, if it has both
}

func newMachine(h Host) *machine {
	m := &machine{Host: h, all: h.allMACs()}
	m.own = m.all
	if hasPorts(h) {
		m.own = macs(slices.Concat(h.PortMACs, h.PXEMACs, []string{h.BootMAC()}))
	}
	if bmc := bmcAddress(h); bmc.IsValid() && !saysNothing(trimmed(h.Serial)) {
		m.board = identity(h.Serial) + " " + bmc.String()
	}
	return m
}

func hasPorts(h Host) bool { return len(h.PortMACs) > 0 }

// settled reports whether a node gets no name under any rules.
func settled(h Host) bool { return h.State != StateEnroll || h.Name != "" || h.Owner != "" }

// before compares two nodes of a machine: first comes the one that represents it. That is a settled node, then one with ports,
// then one with a lock or an instance, then the oldest.
func (m *machine) before(o *machine) int {
	return cmp.Or(
		last(!settled(m.Host), !settled(o.Host)),
		last(!hasPorts(m.Host), !hasPorts(o.Host)),
		last(!m.Locked && !m.Reserved, !o.Locked && !o.Reserved),
		byAge(m.Host, o.Host),
	)
}

// last compares by a property: with it comes after without it.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func byAge(a, b Host) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// same reports whether two nodes are one machine, and by which address. Some chassis share a serial number and a BMC, so nodes
// with the same ones but no common address are two machines.
func (m *machine) same(o *machine) (mac string, same bool) {
	if mac := common(m.own, o.own); mac != "" {
		return mac, true
	}
	if m.board == "" || m.board != o.board {
		return "", false
	}
	mac = common(m.all, o.all)
	return mac, mac != "" || len(m.all) == 0 || len(o.all) == 0
}

// common returns the first common element of two sorted lists, "" if there is none.
func common(a, b []string) string {
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0], b[0]); {
		case c == 0:
			return a[0]
		case c < 0:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return ""
}

// twins returns the node that represents the machine of another node, by the UUID of the other.
func twins(hosts []Host) map[string]twin {
	machines := make([]*machine, 0, len(hosts))
	for _, h := range hosts {
		machines = append(machines, newMachine(h))
	}
	slices.SortFunc(machines, (*machine).before)
	found := map[string]twin{}
	known := map[string][]int{} // by address and by board, so that the time does not grow with the square of the fleet
	for i, m := range machines {
		marks := m.all
		if m.board != "" {
			marks = append(slices.Clone(marks), m.board)
		}
		var likely []int
		for _, mark := range marks {
			likely = append(likely, known[mark]...)
		}
		slices.Sort(likely)
		if !settled(m.Host) {
			for _, other := range slices.Compact(likely) {
				if mac, same := m.same(machines[other]); same {
					found[m.ID] = twin{of: machines[other].Host, mac: mac}
					break
				}
			}
		}
		if _, isTwin := found[m.ID]; isTwin {
			continue
		}
		for _, mark := range marks {
			known[mark] = append(known[mark], i)
		}
	}
	return found
}
