// Package naming decides which machines that Ironic has discovered get a name, and which name. It is pure: it turns facts
// about nodes into a plan. It has no clock and sends no requests; its caller gathers the facts and carries the plan out.
//
// Every client that reaches Ironic's inspection endpoint can post an inventory, so this package trusts no text in it.
package naming

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// StateEnroll is the provision state of discovered nodes, the only one in which a node gets a name.
const StateEnroll = "enroll"

// Host has the facts about one node, from the node, its ports and its inventory. The order of its lists does not matter.
type Host struct {
	ID        string // UUID of the node
	CreatedAt time.Time
	ChangedAt time.Time // last change; zero: none, or not known
	State     string    // provision state
	Name      string    // name of the node; empty: none
	Reserved  bool      // it has an instance_uuid, other than an abandoned claim of a run
	Locked    bool      // it has a reservation: after discovery, the inspection has not ended

	ByHand bool // a client enrolled it

	// Marker of the discovery that named it; empty: none.
	Owner, OwnerName string

	DriverBMCs []string // addresses of BMCs in driver_info: Ironic controls the machine behind them

	PortMACs []string // of all ports
	PXEMACs  []string // of ports with pxe_enabled

	HasInventory bool
	// Texts of the inventory.
	Hostname, Serial, Manufacturer, Product, BMCAddress, BMCv6Address, PXEInterface string
	Interfaces                                                                      []Interface
	Disks                                                                           []Disk
	CPUs, MemoryMB                                                                  int64

	Driver    string
	LastError string
}

// settled reports whether a node gets no name under any rules.
func settled(h Host) bool { return h.State != StateEnroll || h.Name != "" || h.Owner != "" }

// label names the node in a message, by its UUID if it has no name.
func (h Host) label() string {
	if name := cmp.Or(h.Name, h.OwnerName); name != "" {
		return show(name)
	}
	return h.ID
}

// Disk is a disk in an inventory.
type Disk struct {
	Name  string
	Bytes int64
}

// GiB returns the size in GiB, rounded down.
func (d Disk) GiB() int64 { return d.Bytes >> 30 }

// LargestDiskGB returns the size of the largest disk in GiB, rounded down; 0 if the inventory has none.
func (h Host) LargestDiskGB() (most int64) {
	for _, d := range h.Disks {
		most = max(most, d.GiB())
	}
	return most
}

// Interface is a network interface in an inventory.
type Interface struct {
	Name, MAC, IPv4, IPv6, PCIAddress string
	HasCarrier                        bool
}

// Describe returns a text by which a person finds the machine: the node's UUID, and the serial number, MAC address, BMC address and
// hostname as far as they are known.
func (h Host) Describe() string {
	var known []string
	if !isNoSerial(trimmed(h.Serial)) {
		known = append(known, "serial number "+show(h.Serial))
	}
	if mac := h.BootMAC(); mac != "" {
		known = append(known, "MAC address "+mac)
	}
	if bmc := bmcAddress(h); bmc.IsValid() {
		known = append(known, "BMC "+bmc.WithZone("").String())
	}
	if h.Hostname != "" {
		known = append(known, "hostname "+show(h.Hostname))
	}
	if len(known) == 0 {
		return h.ID
	}
	return h.ID + " (" + strings.Join(known, ", ") + ")"
}

// IP returns the global address of the host's first interface that has one: IPv4, else IPv6 in the form of RFC 5952 without
// scope. The order is: the interface that the host booted from, interfaces with a carrier by PCI address and name, the others
// by MAC address; Ironic's own order is random. It returns "" if no interface has a global address.
func (h Host) IP() string {
	addr, reason := h.address()
	if reason != "" {
		return ""
	}
	return addr.String()
}

// address returns the address of IP, or the reason why there is none.
func (h Host) address() (addr netip.Addr, reason string) {
	var linkLocal []netip.Addr
	for _, nic := range h.sortedInterfaces() {
		for _, text := range []string{nic.IPv4, nic.IPv6} {
			text, _, _ = strings.Cut(strings.TrimSpace(text), "%")
			addr, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			addr = addr.Unmap()
			if addr.IsGlobalUnicast() {
				return addr, ""
			}
			if addr.IsLinkLocalUnicast() {
				linkLocal = append(linkLocal, addr)
			}
		}
	}
	switch {
	case len(linkLocal) == 0:
		return netip.Addr{}, "no IP address in the inventory"
	case len(linkLocal) > 1:
		return netip.Addr{}, "all IP addresses are link-local"
	case linkLocal[0].Is4():
		return netip.Addr{}, "the only IPv4 address is link-local"
	default:
		return netip.Addr{}, "the only IPv6 address is link-local"
	}
}

// sortedInterfaces returns the interfaces without the loopback interface, in the order that the comment of IP describes.
func (h Host) sortedInterfaces() []Interface {
	pxe := h.pxeMAC()
	rank := func(nic Interface) int {
		switch {
		case pxe != "" && parseMAC(nic.MAC) == pxe:
			return 0
		case nic.HasCarrier:
			return 1
		}
		return 2
	}
	sorted := slices.DeleteFunc(slices.Clone(h.Interfaces), func(nic Interface) bool { return nic.Name == "lo" })
	slices.SortFunc(sorted, func(a, b Interface) int {
		place := cmp.Compare(placeless(a.PCIAddress), placeless(b.PCIAddress))
		place = cmp.Or(place, cmp.Compare(a.PCIAddress, b.PCIAddress), cmp.Compare(natural(a.Name), natural(b.Name)))
		mac := cmp.Compare(parseMAC(a.MAC), parseMAC(b.MAC))
		first, then := place, mac
		if rank(a) == 2 {
			first, then = mac, place
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), first, then, cmp.Compare(a.IPv4, b.IPv4), cmp.Compare(a.IPv6, b.IPv6))
	})
	return sorted
}

// placeless returns a key by which interfaces without a PCI address come after the others.
func placeless(pciAddress string) int {
	if pciAddress == "" {
		return 1
	}
	return 0
}

var digits = regexp.MustCompile(`[0-9]+`)

// natural pads the numbers in a name, so that eno2 comes before eno10.
func natural(name string) string {
	return digits.ReplaceAllStringFunc(name, func(number string) string {
		return strings.Repeat("0", max(0, 20-len(number))) + number
	})
}
