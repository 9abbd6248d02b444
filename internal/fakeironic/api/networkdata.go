package api

import (
	"net/http"
	"slices"
)

// linkMembers are the required members of a link in network data, by its type; all types but these two have the same.
var linkMembers = map[string][]string{
	"bond": {"ethernet_mac_address", "id", "bond_mode", "bond_links"},
	"vlan": {"vlan_mac_address", "id", "vlan_link", "vlan_id"},
}

// CheckNetworkData checks the required members of network_data, and the links. The server does not check the networks.
func CheckNetworkData(data map[string]any, legacy bool) error {
	for _, key := range []string{"links", "networks", "services"} {
		if _, given := data[key]; !given {
			return Fault(http.StatusBadRequest, "Invalid network_data: %s is a required property ", PyRepr(key))
		}
	}
	links, isList := data["links"].([]any)
	if !isList {
		return Fault(http.StatusBadRequest, "Invalid network_data: %s is not of type 'array' ", PyRepr(data["links"]))
	}
	for _, link := range links {
		if !validLink(Object(link), legacy) {
			return Fault(http.StatusBadRequest, "Invalid network_data: %s is not valid under any of the given schemas ", PyRepr(link))
		}
	}
	return nil
}

func validLink(link map[string]any, legacy bool) bool {
	modes := []string{"802.3ad", "balance-rr", "active-backup", "balance-xor", "broadcast", "balance-tlb", "balance-alb"}
	if legacy {
		modes[0] = "802.1ad"
	}
	types := []string{"bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif", "phy", "bond", "vlan"}
	required := linkMembers[Text(link["type"])]
	if required == nil {
		required = []string{"ethernet_mac_address", "id"}
	}
	for _, key := range required {
		if _, given := link[key]; !given {
			return false
		}
	}
	return slices.Contains(types, Text(link["type"])) && (link["type"] != "bond" || slices.Contains(modes, Text(link["bond_mode"])))
}
