// Package networkdata checks network data in OpenStack's format, as Ironic does, and builds it from a description of a machine's network.
package networkdata

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Fault is a place at which network data breaks OpenStack's schema.
type Fault struct {
	Path string // such as "links[0].type"; empty: the whole document
	Must string // what the value must be, such as "must be a MAC address"
}

// Check compares a decoded JSON document with OpenStack's schema of network data, which Ironic applies to network_data
// (reference/ironic.md#network-data). Members that the schema does not name are allowed. It returns the faults in the order of the
// document.
func Check(document any) []Fault {
	var c networkCheck
	c.document(document)
	return c.faults
}

// CheckDrive checks the network data of a config drive, which Ironic does not check. Unlike Check, it accepts IPv4 netmasks of one address:
// the schema does not have them, and operating systems understand them.
func CheckDrive(document any) []Fault {
	c := networkCheck{ofDrive: true}
	c.document(document)
	return c.faults
}

// CheckBondModes returns the bond modes in a decoded JSON document that a server of a version refuses, although Check
// accepts them. It says nothing of servers whose schema is not known.
func CheckBondModes(document any, server api.Microversion) (faults []Fault) {
	refused, instead := "", ""
	switch {
	case server <= api.LastWithBondMode1ad:
		refused, instead = bondMode3ad, bondMode1ad
	case server >= api.FirstWithBondMode3ad:
		refused, instead = bondMode1ad, bondMode3ad
	}
	object, _ := document.(map[string]any)
	links, _ := object["links"].([]any)
	for i, link := range links {
		if link, _ := link.(map[string]any); link["type"] == linkBond && link["bond_mode"] == refused && refused != "" {
			faults = append(faults, Fault{fmt.Sprintf("links[%d].bond_mode", i), fmt.Sprintf("%q must be %q", refused, instead)})
		}
	}
	return faults
}

// CheckForCloudInit returns what makes cloud-init ignore a decoded document, or a network in it, although CheckDrive has accepted it
// (reference/network-data.md#cloud-init).
func CheckForCloudInit(document any) []Fault {
	var c networkCheck
	object, _ := document.(map[string]any)
	links, _ := object["links"].([]any)
	networks, _ := object["networks"].([]any)
	known := map[string]bool{}
	for _, link := range links {
		members, _ := link.(map[string]any)
		known[textOf(members["id"])] = true
	}
	for i, link := range links {
		at := fmt.Sprintf("links[%d]", i)
		members, _ := link.(map[string]any)
		if mac, _ := members["ethernet_mac_address"].(string); strings.Contains(mac, "-") {
			c.fault(at+".ethernet_mac_address", "%q must have colons", mac)
		}
		if parent := textOf(members["vlan_link"]); members["type"] == linkVLAN && !known[parent] {
			c.fault(at+".vlan_link", "%q is not the id of a link", parent)
		}
		cards, _ := members["bond_links"].([]any)
		for j := 0; members["type"] == linkBond && j < len(cards); j++ { // other links have any value there
			if card := textOf(cards[j]); !known[card] {
				c.fault(fmt.Sprintf("%s.bond_links[%d]", at, j), "%q is not the id of a link", card)
			}
		}
	}
	for i, network := range networks {
		at := fmt.Sprintf("networks[%d]", i)
		members, _ := network.(map[string]any)
		if link := textOf(members["link"]); !known[link] {
			c.fault(at+".link", "%q is not the id of a link", link)
		}
		if kind := members["type"]; members["ip_address"] == nil && (kind == "ipv4" || kind == "ipv6") {
			c.fault(at+".ip_address", "is missing")
		}
	}
	return c.faults
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

// Replaceable says why newer Ironics put Neutron's network data in the place of a decoded document in a config drive if the node has a
// VIF; "" if they do not (reference/network-data.md#config-drives-that-ironic-replaces).
func Replaceable(document any) (why string) {
	object, _ := document.(map[string]any)
	links, _ := object["links"].([]any)
	networks, _ := object["networks"].([]any)
	services, _ := object["services"].([]any)
	for i, link := range links {
		if members, _ := link.(map[string]any); members["mtu"] == nil {
			return fmt.Sprintf("links[%d] has no mtu", i)
		}
	}
	if len(links)+len(networks)+len(services) == 0 {
		return "there are neither links nor networks nor services"
	}
	return ""
}

type networkCheck struct {
	ofDrive bool
	faults  []Fault
}

func (c *networkCheck) document(document any) {
	c.object("", document,
		member{"links", true, listOf((*networkCheck).link)},
		member{"networks", true, listOf((*networkCheck).network)},
		member{"services", true, services(isHost)})
}

func (c *networkCheck) fault(at, format string, values ...any) {
	c.faults = append(c.faults, Fault{at, fmt.Sprintf(format, values...)})
}

// member is a member of a JSON object with the check of its value.
type member struct {
	name     string
	required bool
	check    valueCheck
}

type valueCheck func(c *networkCheck, at string, value any)

func (c *networkCheck) object(at string, value any, members ...member) {
	object, is := value.(map[string]any)
	if !is {
		c.fault(at, "must be an object")
		return
	}
	prefix := at
	if at != "" {
		prefix += "."
	}
	for _, m := range members {
		switch value, given := object[m.name]; {
		case given:
			m.check(c, prefix+m.name, value)
		case m.required:
			c.fault(prefix+m.name, "is missing")
		}
	}
}

// listOf returns a check that a value is a list, and its elements pass the given check.
func listOf(check valueCheck) valueCheck {
	return func(c *networkCheck, at string, value any) {
		list, is := value.([]any)
		if !is {
			c.fault(at, "must be a list")
			return
		}
		for i, element := range list {
			check(c, fmt.Sprintf("%s[%d]", at, i), element)
		}
	}
}

// rule returns a check that a value is a string which ok accepts; must says what the string must be.
func rule(must string, ok func(string) bool) valueCheck {
	return func(c *networkCheck, at string, value any) {
		text, is := value.(string)
		switch {
		case !is:
			c.fault(at, "must be a string")
		case !ok(text):
			c.fault(at, "%q %s", text, must)
		}
	}
}

func oneOf(values ...string) valueCheck {
	return rule("must be one of "+strings.Join(values, ", "), func(s string) bool { return slices.Contains(values, s) })
}

// A link has one of three shapes, by its type.
const (
	linkCard = "phy"
	linkBond = "bond"
	linkVLAN = "vlan"

	bondMode3ad = "802.3ad"
	bondMode1ad = "802.1ad"
)

var (
	linkTypes      = []string{linkCard, linkBond, linkVLAN, "bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif"}
	linuxBondModes = []string{bondMode3ad, "active-backup", "balance-rr", "balance-xor", "broadcast", "balance-tlb", "balance-alb"}
	// bondModes are those of Linux, and the wrong name of LACP in the schema of Ironic 21.4; see CheckBondModes.
	bondModes = slices.Concat(linuxBondModes, []string{bondMode1ad})

	anyText    = rule("", func(string) bool { return true })
	macAddress = rule("must be a MAC address", regexp.MustCompile(`(?i)^([0-9A-F]{2}[:-]){5}[0-9A-F]{2}$`).MatchString)
)

func (c *networkCheck) link(at string, value any) {
	members := []member{{"id", true, anyText}, {"type", true, oneOf(linkTypes...)}, {"mtu", false, mtu}, {"vif_id", false, anyText}}
	object, _ := value.(map[string]any)
	switch object["type"] {
	case linkVLAN:
		members = append(members, member{"vlan_mac_address", true, macAddress}, member{"vlan_link", true, anyText},
			member{"vlan_id", true, integer})
	case linkBond:
		members = append(members, member{"bond_mode", true, oneOf(bondModes...)}, member{"bond_links", true, listOf(anyText)})
		fallthrough
	default:
		members = append(members, member{"ethernet_mac_address", true, macAddress})
	}
	c.object(at, value, members...)
}

func mtu(c *networkCheck, at string, value any) {
	if n, is := document.Number(value); value != nil && (!is || n < 1 || n > 65535) {
		c.fault(at, "must be a number from 1 to 65535")
	}
}

func integer(c *networkCheck, at string, value any) {
	if n, is := document.Number(value); !is || n != math.Trunc(n) {
		c.fault(at, "must be an integer")
	}
}

// family has the rules for addresses of one IP version.
type family struct{ address, host, netmask valueCheck }

var (
	ipv4Netmask = regexp.MustCompile(`^(255\.){0,3}(254|252|248|240|224|192|128|0)(\.0){0,3}$`)

	ipv4 = family{
		address: rule("must be an IPv4 address", isIPv4),
		host:    rule("must be an IPv4 address without a prefix length", isIPv4),
		netmask: netmask4,
	}
	ipv6 = family{
		address: rule("must be an IPv6 address", isIPv6),
		host:    rule("must be an IPv6 address, with a prefix length of at most 99 or none", isIPv6Host),
		netmask: rule("must be an IPv6 netmask such as ffff:ffff:ffff:ffff::", isIPv6),
	}
)

func netmask4(c *networkCheck, at string, value any) {
	if c.ofDrive && value == "255.255.255.255" {
		return
	}
	rule("must be an IPv4 netmask such as 255.255.255.0", func(s string) bool {
		return isIPv4(s) && ipv4Netmask.MatchString(s)
	})(c, at, value)
}

func (c *networkCheck) network(at string, value any) {
	object, _ := value.(map[string]any)
	kind, _ := object["type"].(string)
	members := []member{
		{"id", true, anyText},
		{"link", true, anyText},
		{"network_id", true, anyText},
		{"type", true, oneOf("ipv4", "ipv4_dhcp", "ipv6", "ipv6_dhcp", "ipv6_slaac")},
	}
	switch {
	case strings.HasPrefix(kind, "ipv4"):
		members = append(members, ipv4.members()...)
	case strings.HasPrefix(kind, "ipv6"):
		members = append(members, ipv6.members()...)
	}
	c.object(at, value, members...)
}

func (f family) members() []member {
	route := func(c *networkCheck, at string, value any) {
		c.object(at, value, member{"network", true, f.address}, member{"netmask", true, f.netmask}, member{"gateway", true, f.address},
			member{"services", false, services(f.host)})
	}
	return []member{{"ip_address", false, f.host}, {"netmask", false, f.netmask}, {"routes", false, listOf(route)}}
}

// isHost accepts the addresses of both IP versions.
func isHost(c *networkCheck, at string, value any) {
	rule("must be an IP address", func(s string) bool { return isIPv4(s) || isIPv6Host(s) })(c, at, value)
}

// services returns a check of a list of services; address is the check of their addresses.
func services(address valueCheck) valueCheck {
	return listOf(func(c *networkCheck, at string, value any) {
		c.object(at, value, member{"type", true, oneOf("dns")}, member{"address", true, address})
	})
}

func isIPv4(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && address.Is4()
}

func isIPv6(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && address.Is6()
}

// isIPv6Host accepts an address without a prefix length, or with one of at most two digits.
func isIPv6Host(s string) bool {
	prefix, err := netip.ParsePrefix(s)
	return err == nil && prefix.Addr().Is6() && prefix.Bits() < 100 || isIPv6(s)
}
