package simulate_test

import (
	"net/url"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// bmcOf returns the host of a node's BMC; "" if Ironic knows none.
func bmcOf(n fakeironic.Node) string {
	info, _ := n.Raw["driver_info"].(object)
	for key, value := range info {
		address, _ := value.(string)
		if key != "redfish_address" && key != "ipmi_address" {
			continue
		}
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			return u.Hostname()
		}
		return address
	}
	return ""
}

// runsSomething are the states of machines that an operation on another node of the same BMC would hit.
func runsSomething(n fakeironic.Node) bool {
	switch n.ProvisionState {
	case "enroll", "verifying", "manageable", "available":
		return false
	}
	return true
}

// checkBMC checks that an operation that a run has started hits no machine of another node.
func (s *site) checkBMC(v sent) {
	hit, exists := s.fake.Node(v.node)
	address := bmcOf(hit)
	if !exists || address == "" || v.target == "manage" || v.target == "adopt" {
		return
	}
	for _, n := range s.fake.Nodes() {
		if n.UUID != v.node && bmcOf(n) == address && runsSomething(n) {
			s.broken("%s sent %s to %s, whose BMC %s is that of %s in state %s", v.run, v.target, hit.Name, address, n.Name,
				n.ProvisionState)
		}
	}
}

// checkBMCs checks that no two nodes have one BMC.
func (s *site) checkBMCs() {
	names := map[string][]string{}
	for _, n := range s.fake.Nodes() {
		if address := bmcOf(n); address != "" {
			names[address] = append(names[address], n.Name)
		}
	}
	for address, all := range names {
		if len(all) > 1 {
			s.broken("the nodes %s have the BMC %s", strings.Join(all, ", "), address)
		}
	}
}
