package networkdata_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
)

func TestNetworkData_faultsHavePaths(t *testing.T) {
	t.Parallel()
	const phy = `"id": "eth0", "ethernet_mac_address": "52:54:00:aa:bb:01"`
	links := func(link string) string { return `{"links": [{` + link + `}], "networks": [], "services": []}` }
	networks := func(network string) string {
		return `{"links": [], "networks": [{"id": "n", "link": "eth0", "network_id": "n", ` + network + `}], "services": []}`
	}
	for name, tt := range map[string]struct{ document, want string }{
		"empty":                {`{"links": [], "networks": [], "services": []}`, ""},
		"no object":            {`[]`, " must be an object"},
		"nothing":              {`{}`, "links is missing; networks is missing; services is missing"},
		"no list":              {`{"links": {}, "networks": [], "services": []}`, "links must be a list"},
		"physical link":        {links(phy + `, "type": "phy", "mtu": 9000, "vif_id": "v", "speed": 10`), ""},
		"MTU of null":          {links(phy + `, "type": "phy", "mtu": null`), ""},
		"MTU of zero":          {links(phy + `, "type": "phy", "mtu": 0`), "links[0].mtu must be a number from 1 to 65535"},
		"link without type":    {links(phy), "links[0].type is missing"},
		"link of unknown type": {links(phy + `, "type": "ethernet"`), `links[0].type "ethernet" must be one of phy, bond, vlan`},
		"link of numeric type": {links(phy + `, "type": 1`), `links[0].type must be a string`},
		"link without MAC":     {links(`"id": "eth0", "type": "phy"`), "links[0].ethernet_mac_address is missing"},
		"link with wrong MAC": {
			links(`"id": "eth0", "type": "phy", "ethernet_mac_address": "5254"`),
			`links[0].ethernet_mac_address "5254" must be a MAC address`,
		},
		"bond": {links(phy + `, "type": "bond", "bond_mode": "802.3ad", "bond_links": ["eth0", "eth1"]`), ""},
		"bond of unknown mode": {
			links(phy + `, "type": "bond", "bond_mode": "lacp", "bond_links": []`),
			`links[0].bond_mode "lacp" must be one of 802.3ad`,
		},
		"bond without links": {links(phy + `, "type": "bond", "bond_mode": "802.3ad"`), "links[0].bond_links is missing"},
		"bond with wrong links": {
			links(phy + `, "type": "bond", "bond_mode": "802.3ad", "bond_links": ["a", 1]`),
			"links[0].bond_links[1] must be a string",
		},
		"VLAN": {
			links(`"id": "v", "type": "vlan", "vlan_mac_address": "52-54-00-AA-BB-01", "vlan_link": "eth0", "vlan_id": 7`), "",
		},
		"VLAN with text": {
			links(`"id": "v", "type": "vlan", "vlan_mac_address": "52:54:00:aa:bb:01", "vlan_link": "eth0", "vlan_id": "7"`),
			"links[0].vlan_id must be an integer",
		},
		"DHCP": {networks(`"type": "ipv4_dhcp"`), ""},
		"static": {
			networks(
				`"type": "ipv4", "ip_address": "10.0.0.5", "netmask": "255.255.254.0", "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"}]`), "",
		},
		"static with prefix": {
			networks(`"type": "ipv4", "ip_address": "10.0.0.5/24"`),
			`networks[0].ip_address "10.0.0.5/24" must be an IPv4 address without a prefix length`,
		},
		"netmask with hole": {
			networks(`"type": "ipv4", "netmask": "255.0.255.0"`),
			`networks[0].netmask "255.0.255.0" must be an IPv4 netmask`,
		},
		"netmask of one address": {
			networks(`"type": "ipv4", "netmask": "255.255.255.255"`),
			`networks[0].netmask "255.255.255.255" must be an IPv4 netmask`,
		},
		"route without gateway": {
			networks(`"type": "ipv4", "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0"}]`),
			"networks[0].routes[0].gateway is missing",
		},
		"route of a " +
			"name server": {
			networks(
				`"type": "ipv4", "routes": [{"network": "10.0.0.0", "netmask": "255.0.0.0", "gateway": "10.0.0.1", "services": [{"type": "ntp", "address": "::1"}]}]`), `networks[0].routes[0].services[0].type "ntp" must be one of dns; networks[0].routes[0].services[0].address "::1" must be an IPv4`,
		},
		"IPv6": {
			networks(
				`"type": "ipv6", "ip_address": "2001:db8::5/64", "netmask": "ffff:ffff:ffff:ffff::", "routes": [{"network": "::", "netmask": "::", "gateway": "fe80::1%eth0"}]`), "",
		},
		"IPv6 with long prefix": {
			networks(`"type": "ipv6", "ip_address": "2001:db8::5/127"`),
			`networks[0].ip_address "2001:db8::5/127" must be an IPv6 address, with a prefix length of at most 99 or none`,
		},
		"IPv4 in IPv6": {
			networks(`"type": "ipv6_slaac", "ip_address": "10.0.0.5"`),
			`networks[0].ip_address "10.0.0.5" must be an IPv6 address`,
		},
		"unknown network": {networks(`"type": "static"`), `networks[0].type "static" must be one of ipv4`},
		"services": {
			`{"links": [], "networks": [], "services": [{"type": "dns", "address": "10.0.0.1"}, {"type": "dns", "address": "2001:db8::1"}]}`, "",
		},
		"service without type": {
			`{"links": [], "networks": [], "services": [{"address": "ns1"}]}`,
			`services[0].type is missing; services[0].address "ns1" must be an IP address`,
		},
	} {
		var document any
		if err := json.Unmarshal([]byte(tt.document), &document); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, fault := range networkdata.Check(document) {
			got = append(got, fault.Path+" "+fault.Must)
		}
		if text := strings.Join(got, "; "); !strings.HasPrefix(text, tt.want) || (text == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
	}
}

func TestReplaceable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"links": [{"id": "a", "mtu": 1500}], "networks": [], "services": []}`:                           "",
		`{"links": [], "networks": [], "services": [{"type": "dns"}]}`:                                    "",
		`{"links": [{"id": "a", "mtu": 1500}, {"id": "b", "mtu": null}], "networks": [], "services": []}`: "links[1] has no mtu",
		`{"links": [{"id": "a"}]}`:                      "links[0] has no mtu",
		`{"links": [], "networks": [], "services": []}`: "there are neither links nor networks nor services",
		`{}`: "there are neither links nor networks nor services",
	} {
		var document any
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if got := networkdata.Replaceable(document); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestCheckForCloudInit(t *testing.T) {
	t.Parallel()
	const card, bond, vlan = `{"id": "a", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:01"}`,
		`{"id": "b", "type": "bond", "bond_mode": "802.3ad", "bond_links": ["a"]}`, `{"id": "v", "type": "vlan", "vlan_link": "b"}`
	for document, want := range map[string]string{
		`{"links": [` + vlan + `, ` + bond + `, ` + card +
			`], "networks": [{"link": "v", "type": "ipv4", "ip_address": "192.0.2.5"}, {"link": "a", "type": "ipv4_dhcp"}]}`: "",
		`{"links": [` + vlan + `, ` + card +
			`]}`: `links[0].vlan_link "b" is not the id of a link`,
		`{"links": [{"id": "a", "type": "phy", "bond_links": [{}, ["a"]], "vlan_link": {}}]}`: "",
		`{"links": [` + bond +
			`]}`: `links[0].bond_links[0] "a" is not the id of a link`,
		`{"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "52-54-00-aa-bb-01"}]}`: `links[0].ethernet_mac_address "52-54-00-aa-bb-01" must have colons`,
		`{"links": [` + card +
			`], "networks": [{"link": "eth0", "type": "ipv4_dhcp"}]}`: `networks[0].link "eth0" is not the id of a link`,
		`{"links": [` + card + `], "networks": [{"link": "a", "type": "ipv6"}]}`: `networks[0].ip_address is missing`,
	} {
		var decoded any
		if err := json.Unmarshal([]byte(document), &decoded); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		var got []string
		for _, fault := range networkdata.CheckForCloudInit(decoded) {
			got = append(got, fault.Path+" "+fault.Must)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: %q, want %q", document, text, want)
		}
	}
}
