package networkdata_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
)

// build builds the network data for a description in JSON, and returns its faults, one line each.
func build(t *testing.T, description string) (document map[string]any, faults string) {
	t.Helper()
	var network any
	if err := json.Unmarshal([]byte(description), &network); err != nil {
		t.Fatalf("%v in %s", err, description)
	}
	text, found := networkdata.Build(network)
	var lines []string
	for _, fault := range found {
		lines = append(lines, fault.Path+": "+fault.Must)
	}
	if len(found) == 0 {
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
	}
	return document, strings.Join(lines, "\n")
}

// at returns a part of a document, such as links 0 mtu.
func at(document any, path string) any {
	for step := range strings.FieldsSeq(path) {
		switch parent := document.(type) {
		case map[string]any:
			document = parent[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(parent) {
				return nil
			}
			document = parent[i]
		default:
			return nil
		}
	}
	return document
}

func TestBuild_completesTheDescription(t *testing.T) {
	t.Parallel()
	const cards = `"interfaces": {"a": {"mac": "52-54-00-AA-00-01"}, "b": {"mac": "52:54:00:aa:00:02"}}`
	for name, tt := range map[string]struct{ description, path, want string }{
		"form of MACs": {`{` + cards + `}`, "links 0 ethernet_mac_address", "52:54:00:aa:00:01"},
		"MTU":          {`{` + cards + `}`, "links 1 mtu", "1500"},
		"MTU of a bond's card": {
			`{` + cards + `, "bonds": {"bond0": {"interfaces": ["b", "a"], "mode": "802.3ad", "mtu": 9000}}}`,
			"links 0 mtu", "9000",
		},
		"MAC of a bond": {
			`{` + cards + `, "bonds": {"bond0": {"interfaces": ["b", "a"], "mode": "802.3ad"}}}`,
			"links 2 ethernet_mac_address", "52:54:00:aa:00:02",
		},
		"monitoring of a bond": {
			`{` + cards + `, "bonds": {"bond0": {"interfaces": ["b", "a"], "mode": "802.3ad"}}}`,
			"links 2 bond_miimon", "100",
		},
		"name of a bond": {
			`{` + cards + `, "bonds": {"bond0": {"interfaces": ["b", "a"], "mode": "802.3ad"}}}`,
			"links 2 name", "bond0",
		},
		"order of bonds": {
			`{` + cards +
				`, "bonds": {"bond10": {"interfaces": ["b"], "mode": "802.3ad"}, "bond2": {"interfaces": ["a"], "mode": "802.3ad"}}}`,
			"links 2 id", "bond2",
		},
		"MTU of a VLAN": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "mtu": 9000}}, "vlans": {"v": {"link": "a", "id": 7}}}`,
			"links 1 mtu", "9000",
		},
		"VLAN in text":             {`{` + cards + `, "vlans": {"v": {"link": "a", "id": "7"}}}`, "links 2 vlan_id", "7"},
		"name of a VLAN":           {`{` + cards + `, "vlans": {"v": {"link": "a", "id": 7}}}`, "links 2 id", "a.7"},
		"renamed card":             {`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "rename": "lan0"}}}`, "links 0 name", "lan0"},
		"card that keeps its name": {`{` + cards + `}`, "links 0 name", "<nil>"},
		"null is as good as none": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "mtu": null, "addresses": null}}, "bonds": null}`,
			"links 0 mtu", "1500",
		},
		"prefix of an address": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["192.0.2.5/23"]}}}`,
			"networks 0 netmask", "255.255.254.0",
		},
		"prefix of an IPv6 address": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["2001:DB8::5/56"]}}}`,
			"networks 0 netmask", "ffff:ffff:ffff:ff00::",
		},
		"one IPv6 address": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["2001:db8::5/128"]}}}`,
			"networks 0 netmask", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		},
		"address": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["2001:DB8::5/56"]}}}`,
			"networks 0 ip_address", "2001:db8::5",
		},
		"default route": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["192.0.2.5/24", "198.51.100.5/24"], "gateways": ["198.51.100.1"]}}}`,
			"networks 1 routes 0", "map[gateway:198.51.100.1 netmask:0.0.0.0 network:0.0.0.0]",
		},
		"link-local router": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["192.0.2.5/24", "2001:db8::5/64"], "gateways": ["fe80::1"]}}}`,
			"networks 1 routes 0", "map[gateway:fe80::1 netmask::: network:::]",
		},
		"route": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "addresses": ["192.0.2.5/24"], "routes": [{"to": "203.0.113.0/25", "via": "192.0.2.1"}]}}}`,
			"networks 0 routes 0", "map[gateway:192.0.2.1 netmask:255.255.255.128 network:203.0.113.0]",
		},
		"DHCP": {
			`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "dhcp4": true, "dhcp6": "true", "slaac": false}}}`,
			"networks 1 type", "ipv6_dhcp",
		},
		"SLAAC": {`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "slaac": true}}}`, "networks 0 type", "ipv6_slaac"},
		"domains": {
			`{` + cards + `, "dns": ["192.0.2.53", "2001:db8::53"], "search": ["a.example", "example"]}`, "services 0 search",
			"[a.example example]",
		},
		"servers": {`{` + cards + `, "dns": ["192.0.2.53", "2001:db8::53"]}`, "services 1", "map[address:2001:db8::53 type:dns]"},
	} {
		document, faults := build(t, tt.description)
		if got := fmt.Sprint(at(document, tt.path)); got != tt.want || faults != "" {
			t.Errorf("%s: %s is %s, want %s; faults %q\n%v", name, tt.path, got, tt.want, faults, document)
		}
	}
}

func TestBuild_faultsHavePaths(t *testing.T) {
	t.Parallel()
	card := func(more string) string { return `{"interfaces": {"a": {"mac": "52:54:00:aa:00:01"` + more + `}}}` }
	with := func(more string) string {
		return `{"interfaces": {"a": {"mac": "52:54:00:aa:00:01"}, "b": {"mac": "52:54:00:aa:00:02"}, "c": {"mac": "52:54:00:aa:00:03", "mtu": 9000}}, ` + more + `}`
	}
	bond := func(more string) string { return with(`"bonds": {"bond0": {"interfaces": ["a", "b"], ` + more + `}}`) }
	for description, want := range map[string]string{
		`[]`:                                   `: must be an object`,
		`{}`:                                   `interfaces: is missing`,
		`{"interfaces": {}}`:                   `interfaces: must have a network card`,
		`{"interfaces": []}`:                   `interfaces: must be a map with the names of devices as keys`,
		`{"interfaces": {"a": {}}}`:            `interfaces.a.mac: is missing`,
		`{"interfaces": {"a": "52:54"}}`:       `interfaces.a: must be an object`,
		`{"interfaces": {"a": {"mac": "52"}}}`: `interfaces.a.mac: "52" must be a MAC address, such as 52:54:00:12:34:56`,
		`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01"}}, "dns": ["ns1"], "nics": {}}`: `nics: is not known; known are interfaces, bonds, vlans, dns, search` + "\n" +
			`dns[0]: "ns1" must be an IPv4 or IPv6 address without a prefix length`,
		`{"interfaces": {"0a": {"mac": "52:54:00:aa:00:01"}}}`:                                   `interfaces["0a"]: the name "0a" must have letters`,
		`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01"}, "b": {"mac": "52-54-00-AA-00-01"}}}`: `interfaces.b.mac: the MAC address 52:54:00:aa:00:01 is at interfaces.a.mac already`,

		card(
			`, "mtu": 20`): `interfaces.a.mtu: must be an integer from 68 to 65535`,
		card(
			`, "mtu": 1500.5`): `interfaces.a.mtu: must be an integer`,
		card(
			`, "mtu": "large"`): `interfaces.a.mtu: must be an integer`,
		card(
			`, "dhcp4": "yes"`): `interfaces.a.dhcp4: must be true or false`,
		card(
			`, "gateway": "192.0.2.1"`): `interfaces.a.gateway: is not known; known are mac, rename, mtu, addresses, gateways, routes, dhcp4, dhcp6, slaac`,
		card(
			`, "rename": "a.7"`): `interfaces.a.rename: "a.7" must be a name of at most 15 letters`,
		card(
			`, "rename": "a-very-long-name"`): `interfaces.a.rename: "a-very-long-name" must be a name of at most 15 letters`,
		card(
			`, "addresses": "192.0.2.5/24"`): `interfaces.a.addresses: must be a list`,
		card(
			`, "addresses": [5]`): `interfaces.a.addresses[0]: must be a string`,
		card(
			`, "addresses": ["192.0.2.5"]`): `interfaces.a.addresses[0]: "192.0.2.5" has no prefix length, such as /24`,
		card(
			`, "addresses": ["192.0.2.500/24"]`): `interfaces.a.addresses[0]: "192.0.2.500/24" must be an address with its prefix length`,
		card(
			`, "addresses": ["192.0.2.0/24"]`): `interfaces.a.addresses[0]: "192.0.2.0/24" is the address of the subnet; write the address that the device has in it`,
		card(
			`, "addresses": ["2001:db8::/64"]`): `interfaces.a.addresses[0]: "2001:db8::/64" is the address of the subnet`,
		card(
			`, "addresses": ["192.0.2.255/24"]`): `interfaces.a.addresses[0]: "192.0.2.255/24" is the broadcast address of the subnet`,
		card(
			`, "addresses": ["192.0.2.5/0"]`): `interfaces.a.addresses[0]: "192.0.2.5/0" has the prefix length 0`,
		card(
			`, "addresses": ["::ffff:10.0.0.1/99"]`): `interfaces.a.addresses[0]: "::ffff:10.0.0.1/99" must be an address`,
		card(
			`, "addresses": ["192.0.2.5/24", "192.0.2.5/25"]`): `interfaces.a.addresses[1]: the address 192.0.2.5 is at interfaces.a.addresses[0] already`,
		card(
			`, "addresses": ["2001:db8::5/64"], "slaac": true`): `interfaces.a.addresses[0]: excludes slaac`,
		card(
			`, "addresses": ["2001:db8::5/64"], "dhcp6": true`): `interfaces.a.addresses[0]: excludes dhcp6`,
		card(
			`, "slaac": true, "dhcp6": true`): `interfaces.a.slaac: excludes dhcp6`,
		card(
			`, "gateways": ["192.0.2.1"]`): `interfaces.a.gateways[0]: "192.0.2.1" is in no subnet of interfaces.a.addresses`,
		card(
			`, "addresses": ["192.0.2.5/24"], "gateways": ["192.0.2.5"]`): `interfaces.a.gateways[0]: "192.0.2.5" is in no subnet`,
		card(
			`, "addresses": ["192.0.2.5/24"], "gateways": ["fe80::1%a"]`): `interfaces.a.gateways[0]: "fe80::1%a" must be an IPv4 or IPv6 address`,
		card(
			`, "addresses": ["192.0.2.5/24"], "gateways": ["192.0.2.1", "192.0.2.2"]`): `interfaces.a.gateways[1]: the default route of IPv4 is at interfaces.a.gateways[0] already`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "10.0.0.0/8"}]`): `interfaces.a.routes[0].via: is missing`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "10.0.0.1/8", "via": "192.0.2.1"}]`): `interfaces.a.routes[0].to: "10.0.0.1/8" is not the address of a subnet; is "10.0.0.0/8" meant?`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "0.0.0.0/0", "via": "192.0.2.1"}]`): `interfaces.a.routes[0].to: "0.0.0.0/0" is the default route; write its router in gateways`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "10.0.0.0/8", "via": "10.0.0.1"}]`): `interfaces.a.routes[0].via: "10.0.0.1" is in no subnet of interfaces.a.addresses`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "2001:db8::/32", "via": "192.0.2.1"}]`): `interfaces.a.routes[0].via: "192.0.2.1" is not an IPv6 address`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "10.0.0.0/8", "via": "192.0.2.1", "metric": 5}]`): `interfaces.a.routes[0].metric: is not known; known are to, via`,
		card(
			`, "addresses": ["192.0.2.5/24"], "routes": [{"to": "10.0.0.0/8", "via": "192.0.2.1"}, {"to": "10.0.0.0/8", "via": "192.0.2.2"}]`): `interfaces.a.routes[1].to: the route to 10.0.0.0/8 is at interfaces.a.routes[0].to already`,

		bond(`"mode": "lacp"`): `bonds.bond0.mode: "lacp" must be one of 802.3ad, active-backup`,
		bond(`"mtu": 1500`):    `bonds.bond0.mode: is missing`,
		bond(
			`"mode": "active-backup", "lacp_rate": "fast"`): `bonds.bond0.lacp_rate: needs the mode 802.3ad`,
		bond(
			`"mode": "balance-rr", "xmit_hash_policy": "layer2"`): `bonds.bond0.xmit_hash_policy: needs one of the modes 802.3ad, balance-xor, balance-tlb`,
		bond(
			`"mode": "802.3ad", "xmit_hash_policy": "layer4"`): `bonds.bond0.xmit_hash_policy: "layer4" must be one of layer2`,
		bond(
			`"mode": "802.3ad", "lacp_rate": "often"`): `bonds.bond0.lacp_rate: "often" must be one of slow, fast`,
		bond(
			`"mode": "802.3ad", "miimon": 0`): `bonds.bond0.miimon: must be an integer from 1 to 60000`,
		with(
			`"bonds": {"bond0": {"interfaces": [], "mode": "802.3ad"}}`): `bonds.bond0.interfaces: must have a network card`,
		with(
			`"bonds": {"bond0": {"interfaces": ["a", "d"], "mode": "802.3ad"}}`): `bonds.bond0.interfaces[1]: "d" is not a key of interfaces`,
		with(
			`"bonds": {"bond0": {"interfaces": ["a", "a"], "mode": "802.3ad"}}`): `bonds.bond0.interfaces[1]: "a" is in bonds.bond0 already`,
		with(
			`"bonds": {"bond0": {"interfaces": ["a"], "mode": "802.3ad"}, "bond1": {"interfaces": ["a"], "mode": "802.3ad"}}`): `bonds.bond1.interfaces[0]: "a" is in bonds.bond0 already`,
		with(
			`"bonds": {"bond0": {"interfaces": ["a", "c"], "mode": "802.3ad"}}`): `interfaces.c.mtu: must be 1500, that of bonds.bond0, or left out`,
		with(
			`"bonds": {"b": {"interfaces": ["a"], "mode": "802.3ad"}}`): `interfaces.b: the name "b" is that of bonds.b`,
		with(
			`"bonds": {"bond-with-long-name": {"interfaces": ["a"], "mode": "802.3ad"}}`): `bonds.bond-with-long-name: the name "bond-with-long-name" has more than 15 characters`,
		with(
			`"bonds": {"bond0": {"interfaces": ["a"], "mode": "802.3ad"}}, "search": ["example"]`): `search: needs a name server in dns`,
		with(
			`"dns": ["192.0.2.53"], "search": ["-"]`): `search[0]: "-" must be a domain, such as example.com`,
		with(
			`"vlans": {"v": {"link": "a"}}`): `vlans.v.id: is missing`,
		with(
			`"vlans": {"v": {"link": "d", "id": 7}}`): `vlans.v.link: "d" is neither a key of interfaces nor of bonds`,
		with(
			`"vlans": {"v": {"link": "a", "id": 4095}}`): `vlans.v.id: must be an integer from 1 to 4094`,
		with(
			`"vlans": {"v": {"link": "a", "id": 7, "mtu": 9000}}`): `vlans.v.mtu: must be at most 1500, the MTU of interfaces.a`,
		with(
			`"vlans": {"7": {"link": "a", "id": 7}, "v": {"link": "a", "id": 7}}`): `vlans.v: the VLAN 7 of a is at vlans["7"] already`,
		with(
			`"bonds": {"bond0": {"interfaces": ["a"], "mode": "802.3ad"}}, "vlans": {"v": {"link": "a", "id": 7}}`): `vlans.v.link: "a" is a network card of bonds.bond0; write "bond0"`,
		with(
			`"bonds": {"bond-storage": {"interfaces": ["a"], "mode": "802.3ad"}}, "vlans": {"v": {"link": "bond-storage", "id": 110}}`): `vlans.v: the device name "bond-storage.110" has more than 15 characters; shorten the name of bonds.bond-storage`,
		`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "dhcp4": true}}, "bonds": {"bond0": {"interfaces": ["a"], "mode": "802.3ad"}}}`: `interfaces.a: is a network card of bonds.bond0: write its addresses, routes and DHCP there`,
		`{"interfaces": {"a": {"mac": "52:54:00:aa:00:01", "rename": "lan"}, "b": {"mac": "52:54:00:aa:00:02", "rename": "lan"}}}`:         `interfaces.b.rename: the device name "lan" is at interfaces.a.rename already`,
	} {
		if _, got := build(t, description); !strings.HasPrefix(got, want) {
			t.Errorf("%s\n%q, want %q", description, got, want)
		}
	}
}
