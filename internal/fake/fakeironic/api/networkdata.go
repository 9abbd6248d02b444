package api

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
)

// linkMembers are the required members of a link in network data, by its type; all types but these two have the same.
var linkMembers = map[string][]string{
	"bond": {"ethernet_mac_address", "id", "bond_mode", "bond_links"},
	"vlan": {"vlan_mac_address", "id", "vlan_link", "vlan_id"},
}

// CheckNetworkData checks network_data by Ironic's schema (network-data-schema.json). It accepts the members that the schema does not name.
func CheckNetworkData(data map[string]any, legacy bool) error {
	for _, key := range []string{"links", "networks", "services"} {
		if _, given := data[key]; !given {
			return Fault(http.StatusBadRequest, "Invalid network_data: %s is a required property ", PyRepr(key))
		}
	}
	for _, part := range []struct {
		key   string
		valid func(element map[string]any) bool
	}{
		{"links", func(link map[string]any) bool { return validLink(link, legacy) }},
		{"networks", validNetwork},
		{"services", func(service map[string]any) bool { return validService(service, "") }},
	} {
		elements, isList := data[part.key].([]any)
		if !isList {
			return Fault(http.StatusBadRequest, "Invalid network_data: %s is not of type 'array' ", PyRepr(data[part.key]))
		}
		for _, element := range elements {
			valid, mode := part.valid(Object(element)), Object(element)["bond_mode"]
			if !valid && !legacy && mode != nil && !slices.Contains(bondModes(legacy), Text(mode)) { // as the jsonschema beside 39 says
				return Fault(http.StatusBadRequest, "Invalid network_data: %s is not one of %s ", PyRepr(mode),
					PyRepr(Clone(bondModes(legacy))))
			}
			if !valid {
				return Fault(http.StatusBadRequest, "Invalid network_data: %s is not valid under any of the given schemas ",
					PyRepr(element))
			}
		}
	}
	return nil
}

var (
	networkTypes = map[string]string{"ipv4": "ipv4", "ipv4_dhcp": "ipv4", "ipv6": "ipv6", "ipv6_dhcp": "ipv6", "ipv6_slaac": "ipv6"}
	// shortPrefix matches the prefix length that the schema allows behind an IPv6 address.
	shortPrefix = regexp.MustCompile(`/[0-9]{1,2}$`)
	// netmask4 is the schema's pattern.
	netmask4 = regexp.MustCompile(`^(254|252|248|240|224|192|128|0)\.0\.0\.0|255\.(254|252|248|240|224|192|128|0)\.0\.0|` +
		`255\.255\.(254|252|248|240|224|192|128|0)\.0|255\.255\.255\.(254|252|248|240|224|192|128|0)$`)
)

func validNetwork(network map[string]any) bool {
	family := networkTypes[Text(network["type"])]
	if family == "" || !hasAll(network, "id", "link", "network_id") {
		return false
	}
	if address, given := network["ip_address"]; given && !validHost(Text(address), family) {
		return false
	}
	if mask, given := network["netmask"]; given && !validMask(Text(mask), family) {
		return false
	}
	routes, isList := network["routes"].([]any)
	if _, given := network["routes"]; given && !isList {
		return false
	}
	return !slices.ContainsFunc(routes, func(route any) bool { return !validRoute(Object(route), family) })
}

func validRoute(route map[string]any, family string) bool {
	services, _ := route["services"].([]any)
	return isAddress(Text(route["network"]), family) && validMask(Text(route["netmask"]), family) &&
		isAddress(Text(route["gateway"]), family) &&
		!slices.ContainsFunc(services, func(service any) bool { return !validService(Object(service), family) })
}

// validService checks a service of a network of a family; empty: of any.
func validService(service map[string]any, family string) bool {
	address := Text(service["address"])
	if family == "" {
		return service["type"] == "dns" && (validHost(address, "ipv4") || validHost(address, "ipv6"))
	}
	return service["type"] == "dns" && validHost(address, family)
}

func hasAll(object map[string]any, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, given := object[key]; return !given })
}

func isAddress(text, family string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is4() == (family == "ipv4")
}

func validHost(text, family string) bool {
	if family == "ipv6" {
		text = shortPrefix.ReplaceAllString(text, "")
	}
	return isAddress(text, family)
}

func validMask(text, family string) bool {
	if family == "ipv4" {
		return netmask4.MatchString(text)
	}
	return isAddress(text, family)
}

// bondModes are the modes of a bond that the schema allows.
func bondModes(legacy bool) []string {
	modes := []string{"802.3ad", "balance-rr", "active-backup", "balance-xor", "broadcast", "balance-tlb", "balance-alb"}
	if legacy {
		modes[0] = "802.1ad"
	}
	return modes
}

func validLink(link map[string]any, legacy bool) bool {
	types := []string{"bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif", "phy", "bond", "vlan"}
	required := linkMembers[Text(link["type"])]
	if required == nil {
		required = []string{"ethernet_mac_address", "id"}
	}
	return hasAll(link, required...) && slices.Contains(types, Text(link["type"])) &&
		(link["type"] != "bond" || slices.Contains(bondModes(legacy), Text(link["bond_mode"])))
}
