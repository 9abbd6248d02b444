// Package discovery decides which machines that Ironic has discovered get a name, and which one. It is pure: facts about
// nodes go in, a plan comes out. It has no clock, asks nobody and claims nothing; whoever uses it gathers the facts and
// carries the plan out.
//
// Inventories come from whoever reaches Ironic's inspection endpoint: every text in them is hostile.
package discovery

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// StateEnroll is the only provision state in which a node is up for a name: Ironic discovers machines into it.
const StateEnroll = "enroll"

// Host is what is known about one node, gathered from the node, its ports and its inventory. The order of its lists does
// not matter.
type Host struct {
	ID        string // UUID of the node
	CreatedAt time.Time
	State     string // provision state
	Name      string // of the node; empty: none
	Reserved  bool   // somebody's claim or instance is on it (instance_uuid); not set for a claim that its run has abandoned
	Locked    bool   // a conductor works on it (reservation): after discovery, the inspection has not ended

	ByHand bool // somebody has enrolled it

	// Marker of the discovery that named it; empty: none.
	Owner, OwnerName string

	PortMACs []string // of all ports
	PXEMACs  []string // of ports with pxe_enabled

	HasInventory bool
	// Texts of the inventory.
	Hostname, Serial, Manufacturer, Product, BMCAddress, PXEInterface string
	Interfaces                                                        []Interface
	CPUs, MemoryMB                                                    int64

	Driver    string
	LastError string
}

// Interface is a network interface in an inventory.
type Interface struct {
	Name, MAC, IPv4, IPv6, PCIAddress string
	HasCarrier                        bool
}

// BootMAC is the address of the interface that the host boots from: the inventory's, else that of the only port that boots
// by PXE, else the lowest of all ports. It is lower case with colons; empty if the host has none.
func (h Host) BootMAC() string {
	if mac := h.pxeMAC(); mac != "" {
		return mac
	}
	if pxe := macs(h.PXEMACs); len(pxe) == 1 {
		return pxe[0]
	}
	if all := macs(h.PortMACs); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Describe is how a person finds the machine: the node's UUID, and what is known of its addresses and hostname.
func (h Host) Describe() string {
	var known []string
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

// IP is the address of the host's first interface that has a global one: IPv4, else IPv6 in the form of RFC 5952 without
// scope. First comes the interface that the host booted from, then those with a carrier by PCI address and name, then the
// others by MAC: Ironic lists them in no order. It is empty if no interface has such an address.
func (h Host) IP() string {
	addr, reason := h.address()
	if reason != "" {
		return ""
	}
	return addr.String()
}

// address is the address of IP, or the reason why there is none.
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

// sortedInterfaces are the interfaces in the order of IP.
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

// placeless puts interfaces without a PCI address behind the others.
func placeless(pciAddress string) int {
	if pciAddress == "" {
		return 1
	}
	return 0
}

var digits = regexp.MustCompile(`[0-9]+`)

// natural makes a text that sorts eno2 before eno10.
func natural(name string) string {
	return digits.ReplaceAllStringFunc(name, func(number string) string {
		return strings.Repeat("0", max(0, 20-len(number))) + number
	})
}

// pxeMAC is the inventory's own word on what the host booted from. Boot loaders put the hardware type in front, such as 01-aa-bb.
func (h Host) pxeMAC() string {
	text := strings.TrimSpace(h.PXEInterface)
	if len(text) == len("01-aa-bb-cc-dd-ee-ff") {
		text = text[len("01-"):]
	}
	return parseMAC(text)
}

// allMACs are all addresses that the host is known by.
func (h Host) allMACs() []string {
	texts := slices.Concat(h.PortMACs, h.PXEMACs, []string{h.BootMAC()})
	for _, nic := range h.Interfaces {
		texts = append(texts, nic.MAC)
	}
	return macs(texts)
}

// macs are the distinct MAC addresses among texts, sorted.
func macs(texts []string) []string {
	var found []string
	for _, text := range texts {
		if mac := parseMAC(text); mac != "" {
			found = append(found, mac)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// parseMAC is the lower case form with colons, empty if the text is not the address of one interface.
func parseMAC(text string) string {
	text = strings.TrimSpace(text)
	if len(text) != len("aa:bb:cc:dd:ee:ff") {
		return ""
	}
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 || mac.String() == "00:00:00:00:00:00" { // the odd ones are groups
		return ""
	}
	return mac.String()
}
