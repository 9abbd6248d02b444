package networkdata

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// natural compares names: bond2 is before bond10. Some systems name bonds by their order (reference/network-data.md#bonds-and-vlans).
func natural(a, b string) int {
	textA, textB := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	numberA, _ := strconv.Atoi(a[len(textA):])
	numberB, _ := strconv.Atoi(b[len(textB):])
	return cmp.Or(cmp.Compare(textA, textB), cmp.Compare(numberA, numberB), cmp.Compare(a, b))
}

// relations checks what the values of a description say together. It also gives each device its MTU and MAC address.
type relations struct {
	reader
	*description
	parents map[string]*device // the network cards and bonds, by name
	bondOf  map[string]*device // the bond of a network card, by the name of the card
	used    map[string]string  // where a value is that must not be repeated, by what it is
}

// relate checks a description whose values are valid by themselves, and completes it.
func relate(d *description) []Fault {
	c := relations{description: d, parents: map[string]*device{}, bondOf: map[string]*device{}, used: map[string]string{}}
	if len(d.interfaces) == 0 {
		c.fault("interfaces", "must have a network card")
	}
	if len(d.search) > 0 && len(d.dns) == 0 {
		c.fault("search", "needs a name server in dns")
	}
	for _, bond := range d.bonds {
		c.deviceNames(bond)
		c.bond(bond)
	}
	for _, card := range d.interfaces {
		c.deviceNames(card)
		c.card(card)
	}
	for _, bond := range d.bonds {
		c.completeBond(bond)
	}
	for _, vlan := range d.vlans {
		c.vlan(vlan)
	}
	for _, device := range slices.Concat(d.interfaces, d.bonds, d.vlans) {
		c.addresses(device)
		c.gateways(device)
		c.routes(device)
	}
	return c.faults
}

// once reports a value that is used already.
func (c *relations) once(at, what string) {
	if first, again := c.used[what]; again {
		c.fault(at, "%s is at %s already", what, first)
		return
	}
	c.used[what] = at
}

// deviceNames checks the name of a network card or a bond, and the name to which a card is renamed.
func (c *relations) deviceNames(d *device) {
	if !namePattern.MatchString(d.name) {
		c.fault(d.at, "the name %q must have letters, digits, _ and - only, and begin with a letter", d.name)
	}
	if d.mode != "" && len(d.name) > longestName {
		c.fault(d.at, "the name %q has more than %d characters", d.name, longestName)
	}
	if other := c.parents[d.name]; other != nil {
		c.fault(d.at, "the name %q is that of %s", d.name, other.at)
	}
	c.parents[d.name] = d
	switch {
	case d.mode != "":
		c.once(d.at, fmt.Sprintf("the device name %q", d.name))
	case d.rename != "":
		c.once(below(d.at, "rename"), fmt.Sprintf("the device name %q", d.rename))
	}
}

func (c *relations) bond(bond *device) {
	if len(bond.members) == 0 {
		c.fault(below(bond.at, "interfaces"), "must have a network card")
	}
	for i, member := range bond.members {
		at := fmt.Sprintf("%s[%d]", below(bond.at, "interfaces"), i)
		switch other := c.bondOf[member]; {
		case !slices.ContainsFunc(c.interfaces, func(d *device) bool { return d.name == member }):
			c.fault(at, "%q is not a key of interfaces", member)
		case other != nil:
			c.fault(at, "%q is in %s already", member, other.at)
		default:
			c.bondOf[member] = bond
		}
	}
	if bond.lacpRate != "" && bond.mode != bondMode3ad {
		c.fault(below(bond.at, "lacp_rate"), "needs the mode %s", bondMode3ad)
	}
	if hashing := []string{bondMode3ad, "balance-xor", "balance-tlb"}; bond.hashPolicy != "" && !slices.Contains(hashing, bond.mode) {
		c.fault(below(bond.at, "xmit_hash_policy"), "needs one of the modes %s", strings.Join(hashing, ", "))
	}
	bond.mtu = cmp.Or(bond.mtu, defaultMTU)
}

// defaultMTU is the MTU of a device that says nothing else.
const defaultMTU = 1500

func (c *relations) card(card *device) {
	c.once(below(card.at, "mac"), "the MAC address "+card.mac)
	bond := c.bondOf[card.name]
	if bond == nil {
		card.mtu = cmp.Or(card.mtu, defaultMTU)
		return
	}
	if card.mtu != 0 && card.mtu != bond.mtu {
		c.fault(below(card.at, "mtu"), "must be %d, that of %s, or left out", bond.mtu, bond.at)
	}
	card.mtu = bond.mtu
	if len(card.addresses)+len(card.gateways)+len(card.routes) > 0 || card.dhcp4 || card.dhcp6 || card.slaac {
		c.fault(card.at, "is a network card of %s: write its addresses, routes and DHCP there", bond.at)
	}
}

// completeBond gives a bond the MAC address of its first network card.
func (c *relations) completeBond(bond *device) {
	if len(bond.members) > 0 && c.parents[bond.members[0]] != nil {
		bond.mac = c.parents[bond.members[0]].mac
	}
}

func (c *relations) vlan(vlan *device) {
	parent := c.parents[vlan.link]
	if parent == nil {
		c.fault(below(vlan.at, "link"), "%q is neither a key of interfaces nor of bonds", vlan.link)
		return
	}
	if bond := c.bondOf[vlan.link]; bond != nil {
		c.fault(below(vlan.at, "link"), "%q is a network card of %s; write %q", vlan.link, bond.at, bond.name)
	}
	c.once(vlan.at, fmt.Sprintf("the VLAN %d of %s", vlan.id, vlan.link))
	if vlan.mtu > parent.mtu {
		c.fault(below(vlan.at, "mtu"), "must be at most %d, the MTU of %s", parent.mtu, parent.at)
	}
	if parent.mode != "" || parent.rename != "" {
		if name := fmt.Sprintf("%s.%d", cmp.Or(parent.rename, parent.name), vlan.id); len(name) > longestName {
			c.fault(vlan.at, "the device name %q has more than %d characters; shorten the name of %s", name, longestName, parent.at)
		}
	}
	vlan.mac, vlan.mtu, vlan.name = parent.mac, cmp.Or(vlan.mtu, parent.mtu), fmt.Sprintf("%s.%d", vlan.link, vlan.id)
}

func (c *relations) addresses(d *device) {
	for i, address := range d.addresses {
		at := fmt.Sprintf("%s[%d]", below(d.at, "addresses"), i)
		c.once(at, fmt.Sprintf("the address %s", address.Addr()))
		for _, automatic := range []struct {
			key string
			set bool
		}{{"dhcp6", d.dhcp6}, {"slaac", d.slaac}} {
			if automatic.set && address.Addr().Is6() { // (reference/network-data.md#addresses)
				c.fault(at, "excludes %s: with an IPv6 address of its own, a device ignores the advertisements of routers", automatic.key)
			}
		}
	}
	if d.dhcp6 && d.slaac {
		c.fault(below(d.at, "slaac"), "excludes dhcp6: with netplan, cloud-init makes DHCPv6 of both")
	}
}

func (c *relations) gateways(d *device) {
	for i, gateway := range d.gateways {
		at := fmt.Sprintf("%s[%d]", below(d.at, "gateways"), i)
		c.reached(d, at, gateway)
		c.once(at, fmt.Sprintf("the default route of %s", version(gateway)))
	}
}

func (c *relations) routes(d *device) {
	for i, route := range d.routes {
		at := fmt.Sprintf("%s[%d]", below(d.at, "routes"), i)
		if version(route.to.Addr()) != version(route.via) {
			c.fault(below(at, "via"), `"%s" is not an %s address`, route.via, version(route.to.Addr()))
			continue
		}
		c.reached(d, below(at, "via"), route.via)
		c.once(below(at, "to"), fmt.Sprintf("the route to %s", route.to))
	}
}

// reached reports a router that is in no subnet of a device.
func (c *relations) reached(d *device, at string, router netip.Addr) {
	if d.networkOf(router) >= 0 {
		return
	}
	c.fault(at, `"%s" is in no subnet of %s`, router, below(d.at, "addresses"))
}

// networkOf returns the index of the address whose subnet has a router, or, if its address is link-local, of the first IPv6 address; -1 if
// none has.
func (d *device) networkOf(router netip.Addr) int {
	return slices.IndexFunc(d.addresses, func(p netip.Prefix) bool {
		return p.Masked().Contains(router) && p.Addr() != router || router.IsLinkLocalUnicast() && router.Is6() && p.Addr().Is6()
	})
}

func version(address netip.Addr) string {
	if address.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
