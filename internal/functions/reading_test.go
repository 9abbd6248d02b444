package functions_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// reading is what a system makes of network data: its devices by name.
type reading map[string]device

// device is how a system configures a device. Lists are sorted.
type device struct {
	MAC              string
	MTU              int
	Addresses        []string // with prefix length
	Routes           []string // such as 0.0.0.0/0 via 192.0.2.1
	DHCP4, DHCP6     bool     // DHCP6: or SLAAC
	AcceptRA         string   // whether it follows advertisements of routers; empty: as the system does otherwise
	DNS, Search      []string
	Members          []string // of a bond
	Mode, HashPolicy string
	LACPRate         string
	Monitoring       int
	Link             string // of a VLAN
	VLAN             int
}

// object and list read parts of a JSON document; what is missing is empty.
func object(value any) map[string]any { o, _ := value.(map[string]any); return o }
func list(value any) []any            { l, _ := value.([]any); return l }
func text(value any) string           { s, _ := value.(string); return s }
func number(value any) int            { n, _ := value.(float64); return int(n) }

func texts(value any) (all []string) {
	for _, element := range list(value) {
		all = append(all, text(element))
	}
	return all
}

// macsOf gives the network cards of a description the names eno0, eno1 and so on, as the kernel of a machine does.
func macsOf(network map[string]any) (byMAC, byKey map[string]string) {
	byMAC, byKey = map[string]string{}, map[string]string{}
	cards := object(network["interfaces"])
	for i, key := range slices.Sorted(maps.Keys(cards)) {
		name := fmt.Sprintf("eno%d", i)
		byMAC[strings.ToLower(text(object(cards[key])["mac"]))] = name
		byKey[key] = cmp.Or(text(object(cards[key])["rename"]), name)
	}
	return byMAC, byKey
}

// meant is what a description says, read without the code that builds network data. It must name all MTUs but those of VLANs.
func meant(network map[string]any) reading {
	all := reading{}
	_, names := macsOf(network)
	for key, card := range object(network["interfaces"]) {
		d := meantDevice(network, object(card))
		d.MAC = strings.ToLower(text(object(card)["mac"]))
		all[names[key]] = d
	}
	for key, value := range object(network["bonds"]) {
		bond := object(value)
		d := meantDevice(network, bond)
		for _, member := range texts(bond["interfaces"]) {
			d.Members = append(d.Members, names[member])
			card := all[names[member]]
			card.MTU = d.MTU
			all[names[member]] = card
		}
		d.MAC = all[d.Members[0]].MAC
		slices.Sort(d.Members)
		d.Mode, d.HashPolicy, d.LACPRate = text(bond["mode"]), text(bond["xmit_hash_policy"]), text(bond["lacp_rate"])
		d.Monitoring = cmp.Or(number(bond["miimon"]), 100)
		all[key], names[key] = d, key
	}
	for _, value := range object(network["vlans"]) {
		vlan := object(value)
		d := meantDevice(network, vlan)
		d.Link, d.VLAN = names[text(vlan["link"])], number(vlan["id"])
		d.MAC, d.MTU = all[d.Link].MAC, cmp.Or(d.MTU, all[d.Link].MTU)
		all[fmt.Sprintf("%s.%d", d.Link, d.VLAN)] = d
	}
	return all
}

// meantDevice reads what all kinds of devices have.
func meantDevice(network, value map[string]any) device {
	d := device{MTU: number(value["mtu"]), Addresses: texts(value["addresses"]), DHCP4: value["dhcp4"] == true}
	if d.DHCP6 = value["dhcp6"] == true || value["slaac"] == true; value["dhcp6"] == true {
		d.AcceptRA = "true"
	}
	for _, address := range d.Addresses {
		if strings.Contains(address, ":") {
			d.AcceptRA = "false"
		}
	}
	for _, gateway := range texts(value["gateways"]) {
		d.Routes = append(d.Routes, netip.PrefixFrom(netip.MustParseAddr(gateway), 0).Masked().String()+" via "+gateway)
	}
	for _, route := range list(value["routes"]) {
		d.Routes = append(d.Routes, text(object(route)["to"])+" via "+text(object(route)["via"]))
	}
	if len(d.Addresses) > 0 {
		d.DNS, d.Search = texts(network["dns"]), texts(network["search"])
	}
	return d.sorted()
}

func (d device) sorted() device {
	for _, values := range [][]string{d.Addresses, d.Routes, d.DNS, d.Search, d.Members} {
		slices.Sort(values)
	}
	return d
}

// fromNetplan reads a file of netplan.
func fromNetplan(file any) reading {
	all := reading{}
	network := object(object(file)["network"])
	for _, kind := range []string{"ethernets", "bonds", "vlans"} {
		for name, value := range object(network[kind]) {
			v := object(value)
			d := device{
				MTU: number(v["mtu"]), Addresses: texts(v["addresses"]), DHCP4: v["dhcp4"] == true, DHCP6: v["dhcp6"] == true,
				DNS: texts(object(v["nameservers"])["addresses"]), Search: texts(object(v["nameservers"])["search"]),
				Members: texts(v["interfaces"]), Link: text(v["link"]), VLAN: number(v["id"]),
				MAC: cmp.Or(text(v["macaddress"]), text(object(v["match"])["macaddress"])),
			}
			if ra, given := v["accept-ra"]; given {
				d.AcceptRA = fmt.Sprint(ra)
			}
			parameters := object(v["parameters"])
			d.Mode, d.HashPolicy, d.LACPRate = text(parameters["mode"]), text(parameters["transmit-hash-policy"]),
				text(parameters["lacp-rate"])
			d.Monitoring = number(parameters["mii-monitor-interval"])
			for _, route := range list(v["routes"]) {
				d.Routes = append(d.Routes, text(object(route)["to"])+" via "+text(object(route)["via"]))
			}
			all[cmp.Or(text(v["set-name"]), name)] = d.sorted()
		}
	}
	return all
}

// fromSysconfig reads the files of RHEL. Name servers are in another file, for all devices. It names the parts of a bond as Linux does.
func fromSysconfig(files map[string]string) reading {
	all := reading{}
	for path, content := range files {
		name, is := strings.CutPrefix(path, "etc/sysconfig/network-scripts/ifcfg-")
		if !is {
			continue
		}
		values := assignments(content)
		d := device{MAC: cmp.Or(values["HWADDR"], values["MACADDR"]), DHCP4: values["BOOTPROTO"] == "dhcp" ||
			values["BOOTPROTO"] == "dhcp4", DHCP6: values["DHCPV6C"] == "yes" || values["IPV6_AUTOCONF"] == "yes"}
		_, _ = fmt.Sscan(values["MTU"], &d.MTU)
		for i := range len(values) {
			suffix := strings.TrimPrefix(fmt.Sprint(i), "0")
			if address, given := values["IPADDR"+suffix]; given {
				d.Addresses = append(d.Addresses, fmt.Sprintf("%s/%d", address, ones(values["NETMASK"+suffix])))
			}
		}
		d.Addresses = append(d.Addresses, strings.Fields(values["IPV6ADDR"]+" "+values["IPV6ADDR_SECONDARIES"])...)
		if gateway := values["GATEWAY"]; gateway != "" {
			d.Routes = append(d.Routes, "0.0.0.0/0 via "+gateway)
		}
		if gateway := values["IPV6_DEFAULTGW"]; gateway != "" {
			d.Routes = append(d.Routes, "::/0 via "+gateway)
		}
		d.Routes = append(d.Routes, sysconfigRoutes(files, name)...)
		for option := range strings.FieldsSeq(values["BONDING_OPTS"]) {
			switch key, value, _ := strings.Cut(option, "="); key {
			case "mode":
				d.Mode = value
			case "miimon":
				_, _ = fmt.Sscan(value, &d.Monitoring)
			}
		}
		for i := 0; values[fmt.Sprintf("BONDING_SLAVE%d", i)] != ""; i++ {
			d.Members = append(d.Members, values[fmt.Sprintf("BONDING_SLAVE%d", i)])
		}
		if values["VLAN"] == "yes" {
			d.Link = values["PHYSDEV"]
			_, _ = fmt.Sscanf(name, d.Link+".%d", &d.VLAN)
		}
		all[name] = d.sorted()
	}
	return all
}

// sysconfigRoutes reads the files of a device's routes.
func sysconfigRoutes(files map[string]string, name string) (routes []string) {
	values := assignments(files["etc/sysconfig/network-scripts/route-"+name])
	for i := 0; values[fmt.Sprintf("ADDRESS%d", i)] != ""; i++ {
		n := fmt.Sprint(i)
		routes = append(routes, fmt.Sprintf("%s/%d via %s", values["ADDRESS"+n], ones(values["NETMASK"+n]), values["GATEWAY"+n]))
	}
	for line := range strings.Lines(files["etc/sysconfig/network-scripts/route6-"+name]) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == "via" {
			routes = append(routes, fields[0]+" via "+fields[2])
		}
	}
	return routes
}

// assignments reads lines such as MTU=1500.
func assignments(content string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(content) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is && !strings.HasPrefix(key, "#") {
			all[key] = strings.Trim(value, `"`)
		}
	}
	return all
}

// ones counts the bits of an IPv4 netmask.
func ones(netmask string) (bits int) {
	for part := range strings.SplitSeq(netmask, ".") {
		var n int
		_, _ = fmt.Sscan(part, &n)
		for ; n > 0; n &= n - 1 {
			bits++
		}
	}
	return bits
}

// sameReading fails a test unless two readings are equal.
func sameReading(t *testing.T, what string, got, want reading) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(merged(got, want))) {
		if g, w := inJSON(t, got[name]), inJSON(t, want[name]); g != w {
			t.Errorf("%s: the device %s\ngot  %s\nwant %s", what, name, g, w)
		}
	}
}

func merged(a, b reading) reading {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func inJSON(t *testing.T, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
