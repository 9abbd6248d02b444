package fakeironic

import (
	"net/http"
	"slices"
)

// linkMembers are the required members of a link in network data, by its type; all types but these two have the same.
var linkMembers = map[string][]string{
	"bond": {"ethernet_mac_address", "id", "bond_mode", "bond_links"},
	"vlan": {"vlan_mac_address", "id", "vlan_link", "vlan_id"},
}

// checkNetworkData checks the required members of network_data, and the links. The server does not check the networks.
func checkNetworkData(data map[string]any, legacy bool) error {
	for _, key := range []string{"links", "networks", "services"} {
		if _, given := data[key]; !given {
			return fault(http.StatusBadRequest, "Invalid network_data: %s is a required property ", pyRepr(key))
		}
	}
	links, isList := data["links"].([]any)
	if !isList {
		return fault(http.StatusBadRequest, "Invalid network_data: %s is not of type 'array' ", pyRepr(data["links"]))
	}
	for _, link := range links {
		if !validLink(object(link), legacy) {
			return fault(http.StatusBadRequest, "Invalid network_data: %s is not valid under any of the given schemas ", pyRepr(link))
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
	required := linkMembers[text(link["type"])]
	if required == nil {
		required = []string{"ethernet_mac_address", "id"}
	}
	for _, key := range required {
		if _, given := link[key]; !given {
			return false
		}
	}
	return slices.Contains(types, text(link["type"])) && (link["type"] != "bond" || slices.Contains(modes, text(link["bond_mode"])))
}
