package discovery

import (
	"cmp"
	"slices"
)

// A machine can have several nodes: its agent repeats the request that creates one, and a machine that is known may be
// discovered again. Only one of them is up for a name.

// twin is the node that stands for the machine of another one.
type twin struct {
	of  Host
	mac string // the address that gives it away; empty: serial number and BMC do
}

// reason is why the host is not taken.
func (t twin) reason(h Host) string {
	if name := cmp.Or(t.of.Name, t.of.OwnerName); name != "" && t.mac != "" && hasPorts(h) {
		return "its MAC address " + t.mac + " belongs to " + name
	}
	return "duplicate of " + t.of.ID
}

// machine is what a host is compared by.
type machine struct {
	Host
	// Those that nobody else can have: of the ports, whose addresses are unique in Ironic, and the one that it booted from.
	// A host without ports has lost that race: it is known by all addresses of its inventory.
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

// settled reports whether a node is not up for a name, whatever the rules.
func settled(h Host) bool { return h.State != StateEnroll || h.Name != "" || h.Owner != "" }

// before is who stands for a machine: a settled node, then one with ports, then one that somebody is at work on, then the
// oldest.
func (m *machine) before(o *machine) int {
	return cmp.Or(
		last(!settled(m.Host), !settled(o.Host)),
		last(!hasPorts(m.Host), !hasPorts(o.Host)),
		last(!m.Locked && !m.Reserved, !o.Locked && !o.Reserved),
		byAge(m.Host, o.Host),
	)
}

// last puts what has a property behind what has not.
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

// same reports whether two nodes are one machine, and by which address. Boards with the same serial number and BMC but no
// address in common are not: some chassis share both.
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

// common is the first element of two sorted lists.
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

// twins finds, for each node that another one stands for, that other one, by UUID.
func twins(hosts []Host) map[string]twin {
	machines := make([]*machine, 0, len(hosts))
	for _, h := range hosts {
		machines = append(machines, newMachine(h))
	}
	slices.SortFunc(machines, (*machine).before)
	found := map[string]twin{}
	known := map[string][]int{} // by address and by board, so that a large fleet is not compared each with each
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
