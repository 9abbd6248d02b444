package networkdata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
)

// Build returns network data in OpenStack's format for a description of the network of a machine, decoded from JSON. The faults have
// paths in the description; if there are any, there is no document. CheckDrive accepts the document, and Check does unless there is an IPv4
// address or route with the prefix length 32.
//
// All systems that read network data understand the document in the same way (reference/network-data.md#the-portable-form).
func Build(network any) (document []byte, faults []Fault) {
	var r reader
	var d description
	object(&r, "", network, networkKeys, &d)
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	if faults := relate(&d); len(faults) > 0 {
		return nil, faults
	}
	document, err := json.Marshal(d.document())
	if err != nil {
		panic(err) // it has only strings and numbers
	}
	return document, nil
}

// The members of network data, in the order in which a person reads them.
type (
	openstack struct {
		Links    []openstackLink    `json:"links"`
		Networks []openstackNetwork `json:"networks"`
		Services []openstackService `json:"services"`
	}
	openstackLink struct {
		ID   string `json:"id"`
		Name string `json:"name,omitempty"`
		Type string `json:"type"`
		MAC  string `json:"ethernet_mac_address,omitempty"`
		// Ironic may replace data without it (reference/network-data.md#config-drives-that-ironic-replaces)
		MTU        int      `json:"mtu"`
		Members    []string `json:"bond_links,omitempty"`
		Mode       string   `json:"bond_mode,omitempty"`
		HashPolicy string   `json:"bond_xmit_hash_policy,omitempty"`
		LACPRate   string   `json:"bond_lacp_rate,omitempty"`
		Monitoring int      `json:"bond_miimon,omitempty"`
		Parent     string   `json:"vlan_link,omitempty"`
		VLAN       int      `json:"vlan_id,omitempty"`
		VLANMAC    string   `json:"vlan_mac_address,omitempty"`
	}
	openstackNetwork struct {
		ID        string           `json:"id"`
		NetworkID string           `json:"network_id"`
		Link      string           `json:"link"`
		Type      string           `json:"type"`
		Address   string           `json:"ip_address,omitempty"`
		Netmask   string           `json:"netmask,omitempty"`
		Routes    []openstackRoute `json:"routes"`
	}
	openstackRoute struct {
		Network string `json:"network"`
		Netmask string `json:"netmask"`
		Gateway string `json:"gateway"`
	}
	openstackService struct {
		Type    string   `json:"type"`
		Address string   `json:"address"`
		Search  []string `json:"search,omitempty"`
	}
)

func (d *description) document() openstack {
	all := openstack{[]openstackLink{}, []openstackNetwork{}, []openstackService{}}
	for _, card := range d.interfaces {
		all.add(card, openstackLink{Name: card.rename, Type: linkCard, MAC: card.mac})
	}
	for _, bond := range d.bonds {
		monitoring := bond.miimon
		monitoring = cmp.Or(monitoring, 100)
		all.add(bond, openstackLink{
			Name: bond.name, Type: linkBond, MAC: bond.mac, Members: bond.members, Mode: bond.mode,
			HashPolicy: bond.hashPolicy, LACPRate: bond.lacpRate, Monitoring: monitoring,
		})
	}
	for _, vlan := range d.vlans {
		all.add(vlan, openstackLink{Type: linkVLAN, Parent: vlan.link, VLAN: vlan.id, VLANMAC: vlan.mac})
	}
	for _, server := range d.dns {
		all.Services = append(all.Services, openstackService{Type: "dns", Address: server.String()})
	}
	if len(d.search) > 0 {
		all.Services[0].Search = d.search
	}
	return all
}

func (all *openstack) add(d *device, link openstackLink) {
	link.ID, link.MTU = d.name, d.mtu
	all.Links = append(all.Links, link)
	for _, automatic := range []struct {
		kind string
		set  bool
	}{{"ipv4_dhcp", d.dhcp4}, {"ipv6_dhcp", d.dhcp6}, {"ipv6_slaac", d.slaac}} {
		if automatic.set {
			id := d.name + "-" + automatic.kind
			all.Networks = append(all.Networks, openstackNetwork{
				ID: id, NetworkID: id, Link: d.name, Type: automatic.kind,
				Routes: []openstackRoute{},
			})
		}
	}
	first := len(all.Networks)
	for i, address := range d.addresses {
		kind := "ipv4"
		if address.Addr().Is6() {
			kind = "ipv6"
		}
		id := fmt.Sprintf("%s-%s-%d", d.name, kind, i)
		all.Networks = append(all.Networks, openstackNetwork{
			ID: id, NetworkID: id, Link: d.name, Type: kind, Address: address.Addr().String(), Netmask: netmask(address),
			Routes: []openstackRoute{},
		})
	}
	addRoute := func(to netip.Prefix, via netip.Addr) {
		network := &all.Networks[first+d.networkOf(via)]
		network.Routes = append(network.Routes, openstackRoute{to.Addr().String(), netmask(to), via.String()})
	}
	for _, gateway := range d.gateways {
		addRoute(netip.PrefixFrom(gateway, 0).Masked(), gateway)
	}
	for _, route := range d.routes {
		addRoute(route.to, route.via)
	}
}

// netmask returns the mask of a subnet in full, such as 255.255.255.0 or ffff:ffff:ffff:ffff::.
func netmask(subnet netip.Prefix) string {
	mask, _ := netip.AddrFromSlice(net.CIDRMask(subnet.Bits(), subnet.Addr().BitLen()))
	return mask.String()
}
