package functions_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// randomizer makes a description of a network. Each of its devices has a subnet of its own.
type randomizer struct {
	*rand.Rand
	subnets    int
	has4, has6 bool // a default route
}

// randomNetwork returns the description of a random network, as a JSON decoder does. All devices but VLANs and the network cards of bonds
// have an MTU.
func randomNetwork(from *rand.Rand) map[string]any {
	r := randomizer{Rand: from}
	network := map[string]any{}
	cards, bonds, vlans := map[string]any{}, map[string]any{}, map[string]any{}
	mtus := map[string]int{} // of the devices that VLANs may use
	n := 1 + r.IntN(5)
	for i := range n {
		card := map[string]any{"mac": fmt.Sprintf("52:54:00:AA:%02x:%02x", r.IntN(256), i)}
		if r.IntN(4) == 0 {
			card["rename"] = fmt.Sprintf("lan%d", i)
		}
		cards[fmt.Sprintf("nic%d", i)] = card
	}
	free := 0
	for b := 0; b < 2 && n-free >= 2 && r.IntN(2) == 0; b++ {
		name := fmt.Sprintf("bond%d", b)
		bond := r.bond([]any{fmt.Sprintf("nic%d", free+1), fmt.Sprintf("nic%d", free)})
		r.addDevice(bond)
		bonds[name], mtus[name] = bond, number(bond["mtu"])
		free += 2
	}
	for i := free; i < n; i++ {
		name := fmt.Sprintf("nic%d", i)
		card := object(cards[name])
		r.addDevice(card)
		mtus[name] = number(card["mtu"])
	}
	for name, mtu := range sortedPairs(mtus) {
		for v := range r.IntN(3) {
			vlan := map[string]any{"link": name, "id": float64(1 + v*1000 + r.IntN(1000))}
			r.addDevice(vlan)
			delete(vlan, "mtu")
			if r.IntN(2) == 0 {
				vlan["mtu"] = float64(1280 + r.IntN(mtu-1280+1))
			}
			vlans[fmt.Sprintf("%s %d", name, v)] = vlan
		}
	}
	network["interfaces"] = cards
	if len(bonds) > 0 {
		network["bonds"] = bonds
	}
	network["vlans"] = vlans
	if r.IntN(3) > 0 {
		network["dns"] = []any{"192.0.2.53", "2001:db8::53"}[:1+r.IntN(2)]
		network["search"] = []any{"rack1.example.com", "example.com"}[:r.IntN(3)]
	}
	return network
}

// sortedPairs visits a map in a fixed order: a seed has one description.
func sortedPairs(values map[string]int) func(yield func(string, int) bool) {
	return func(yield func(string, int) bool) {
		for _, kind := range []string{"bond", "nic"} {
			for i := range 10 {
				name := fmt.Sprintf("%s%d", kind, i)
				if value, is := values[name]; is && !yield(name, value) {
					return
				}
			}
		}
	}
}

func (r *randomizer) bond(members []any) map[string]any {
	modes := []string{"802.3ad", "active-backup", "balance-rr", "balance-xor", "broadcast", "balance-tlb", "balance-alb"}
	bond := map[string]any{"interfaces": members, "mode": modes[r.IntN(len(modes))]}
	switch bond["mode"] {
	case "802.3ad":
		bond["lacp_rate"], bond["xmit_hash_policy"] = "fast", "layer3+4"
	case "balance-xor", "balance-tlb":
		bond["xmit_hash_policy"] = "layer2+3"
	}
	if r.IntN(2) == 0 {
		bond["miimon"] = float64(1 + r.IntN(1000))
	}
	return bond
}

// addDevice adds an MTU, addresses and routes to a device.
func (r *randomizer) addDevice(d map[string]any) {
	d["mtu"] = float64(1280 + r.IntN(9000-1280+1))
	var addresses, gateways, routes []any
	for range r.IntN(3) {
		if r.IntN(2) == 0 {
			address, router := r.subnet(netip.AddrFrom4([4]byte{10}), 24, 32)
			addresses = append(addresses, address.String())
			if router.IsValid() && !r.has4 && r.IntN(2) == 0 {
				r.has4, gateways = true, append(gateways, router.String())
			} else if router.IsValid() && r.IntN(2) == 0 {
				routes = append(routes, map[string]any{
					"to":  fmt.Sprintf("198.18.%d.0/%d", r.subnets, []int{24, 32}[r.IntN(2)]),
					"via": router.String(),
				})
			}
			continue
		}
		address, router := r.subnet(netip.MustParseAddr("2001:db8::"), 48, 128)
		addresses = append(addresses, address.String())
		if !r.has6 && r.IntN(2) == 0 {
			if !router.IsValid() || r.IntN(2) == 0 {
				router = netip.MustParseAddr("fe80::1")
			}
			r.has6, gateways = true, append(gateways, router.String())
		} else if router.IsValid() && r.IntN(2) == 0 {
			routes = append(routes, map[string]any{"to": fmt.Sprintf("2001:db8:ff:%x::/64", r.subnets), "via": router.String()})
		}
	}
	d["addresses"], d["gateways"], d["routes"] = addresses, gateways, routes
	for _, kind := range []string{"dhcp4", "dhcp6", "slaac"}[:1+2*r.IntN(2)] {
		d[kind] = r.IntN(3) == 0
	}
	if d["dhcp6"] == true || hasIPv6(addresses) {
		d["slaac"] = false
	}
	if hasIPv6(addresses) {
		d["dhcp6"] = false
	}
}

func hasIPv6(addresses []any) bool {
	for _, address := range addresses {
		if netip.MustParsePrefix(text(address)).Addr().Is6() {
			return true
		}
	}
	return false
}

// subnet returns an address in a new subnet with a random prefix length, and a router in it; invalid if the subnet has no room for one.
func (r *randomizer) subnet(base netip.Addr, least, most int) (address netip.Prefix, router netip.Addr) {
	r.subnets++
	bytes := base.AsSlice()
	bytes[len(bytes)/4+1] = byte(r.subnets) // below the shortest prefix
	network, _ := netip.AddrFromSlice(bytes)
	bits := least + r.IntN(most-least+1)
	if most-bits < 2 {
		if most == bits {
			return netip.PrefixFrom(network.Next(), bits), netip.Addr{}
		}
		return netip.PrefixFrom(network, bits), network.Next()
	}
	return netip.PrefixFrom(network.Next().Next(), bits), network.Next()
}
