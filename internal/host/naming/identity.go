package naming

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// hostIdentities returns what identifies a host in include, exclude and names: serial number, MAC addresses and UUID.
func hostIdentities(h Host) map[string]bool {
	own := map[string]bool{identity(h.ID): true, identity(h.Serial): true}
	delete(own, "")
	for _, mac := range h.allMACs() {
		own[mac] = true
	}
	return own
}

// identity normalises a serial number, MAC address or UUID for comparison.
func identity(text string) string {
	if mac := parseMAC(text); mac != "" {
		return mac
	}
	return strings.ToLower(strings.TrimSpace(text))
}

// BootMAC returns the MAC address that the host boots from: the one in the inventory, else that of the only port with
// pxe_enabled, else the lowest of all ports. It is lower case with colons, "" if the host has none.
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

// pxeMAC returns the MAC address in the inventory that the host booted from. Boot loaders prefix it with the hardware type, as
// in 01-aa-bb.
func (h Host) pxeMAC() string {
	text := strings.TrimSpace(h.PXEInterface)
	if len(text) == len("01-aa-bb-cc-dd-ee-ff") {
		text = text[len("01-"):]
	}
	return parseMAC(text)
}

func (h Host) allMACs() []string {
	texts := slices.Concat(h.PortMACs, h.PXEMACs, []string{h.BootMAC()})
	for _, nic := range h.Interfaces {
		texts = append(texts, nic.MAC)
	}
	return macs(texts)
}

// macs returns the distinct MAC addresses among texts, sorted.
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

// parseMAC returns a MAC address in lower case with colons, "" if the text is not the address of one interface.
func parseMAC(text string) string {
	text = strings.TrimSpace(text)
	if len(text) != len("aa:bb:cc:dd:ee:ff") {
		return ""
	}
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 || mac.String() == "00:00:00:00:00:00" { // odd: multicast
		return ""
	}
	return mac.String()
}

// bmcAddress returns the address of the host's BMC, the zero Addr if it has none.
func bmcAddress(h Host) netip.Addr { return parseBMC(h.BMCAddress) }

// parseBMC returns the address of a BMC, the zero Addr if the text has none.
func parseBMC(text string) netip.Addr {
	addr, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || addr.IsUnspecified() {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// bmcsOf returns the addresses among texts that only one BMC of a site can have: no loopback and link-local addresses, which many BMCs
// use for the network between BMC and host.
func bmcsOf(texts ...string) []string {
	var found []string
	for _, text := range texts {
		if addr := parseBMC(text); addr.IsValid() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() {
			found = append(found, addr.String())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
