package naming

import (
	"cmp"
	"fmt"
	"slices"
)

// A machine can have several nodes: its agent repeats the request that creates one, and Ironic may discover a known machine
// again. Only one of the nodes gets a name.

// twin is the node that represents the machine of another node.
type twin struct {
	of Host
	by sign
}

// sign is what says that two nodes are one machine. At most one field is set; none: both have the same serial number and BMC.
type sign struct {
	mac string // the MAC address that both have
	bmc string // the address of the BMC that both have
}

func (t twin) reason(h Host) string {
	name := cmp.Or(t.of.Name, t.of.OwnerName)
	switch {
	case t.by.bmc != "":
		return fmt.Sprintf("its BMC address %s is that of node %s, so that it is probably the same machine; if two machines share this "+
			"BMC, enroll this one with a metal_host of its own", t.by.bmc, t.of.label())
	case name != "" && t.by.mac != "" && hasPorts(h):
		return "its MAC address " + t.by.mac + " belongs to " + name
	}
	return "duplicate of " + t.of.ID
}

type machine struct {
	Host
	// own has the addresses of the ports, which are unique in Ironic, and the boot address. If another node of the machine has the
	// ports, own has all addresses of the inventory.
	own    []string
	all    []string
	serial string   // empty: none, or one that says nothing
	driver []string // addresses of the BMC in driver_info
	bmcs   []string // and in the inventory
}

func newMachine(h Host) *machine {
	m := &machine{
		Host: h, all: h.allMACs(), driver: bmcsOf(h.DriverBMCs...),
		bmcs: bmcsOf(append([]string{h.BMCAddress, h.BMCv6Address}, h.DriverBMCs...)...),
	}
	m.own = m.all
	if hasPorts(h) {
		m.own = macs(slices.Concat(h.PortMACs, h.PXEMACs, []string{h.BootMAC()}))
	}
	if !isNoSerial(trimmed(h.Serial)) {
		m.serial = identity(h.Serial)
	}
	return m
}

func hasPorts(h Host) bool { return len(h.PortMACs) > 0 }

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

// same reports whether two nodes are one machine, and by which sign. shared has the addresses of the BMCs that several enrolled nodes
// have.
func (m *machine) same(o *machine, shared map[string]bool) (by sign, same bool) {
	if mac := common(m.own, o.own); mac != "" {
		return sign{mac: mac}, true
	}
	bmc := common(m.bmcs, o.bmcs)
	if bmc == "" || m.apart(o, bmc, shared[bmc]) {
		return sign{}, false
	}
	if m.serial != "" && m.serial == o.serial {
		return sign{mac: common(m.all, o.all)}, true
	}
	return sign{bmc: bmc}, true
}

// apart reports whether two nodes with one BMC address are certainly two machines. In doubt they are one: a machine that is taken twice
// may be cleaned while it is deployed. Machines that share a BMC or a factory default have different serial numbers; but the only
// enrolled node with an address controls whatever is behind it.
func (m *machine) apart(o *machine, bmc string, shared bool) bool {
	serials := m.serial != "" && o.serial != "" && m.serial != o.serial
	if shared {
		return serials || len(m.all) > 0 && len(o.all) > 0 && common(m.all, o.all) == ""
	}
	return serials && !slices.Contains(m.driver, bmc) && !slices.Contains(o.driver, bmc)
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
	holders, shared := map[string]int{}, map[string]bool{}
	for _, h := range hosts {
		m := newMachine(h)
		machines = append(machines, m)
		for _, bmc := range m.driver {
			holders[bmc]++
			shared[bmc] = holders[bmc] > 1
		}
	}
	slices.SortFunc(machines, (*machine).before)
	found := map[string]twin{}
	known := map[string][]int{} // by address of a network card or a BMC, so that the time does not grow with the square of the fleet
	for i, m := range machines {
		marks := slices.Concat(m.all, m.bmcs)
		var likely []int
		for _, mark := range marks {
			likely = append(likely, known[mark]...)
		}
		slices.Sort(likely)
		if !settled(m.Host) {
			for _, other := range slices.Compact(likely) {
				if by, same := m.same(machines[other], shared); same {
					found[m.ID] = twin{of: machines[other].Host, by: by}
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
