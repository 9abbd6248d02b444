package site

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// StartDiscovery is Start with an Ironic that has discovery. Tests that use it are named TestAccDiscover…, so that -skip can
// exclude them on an Ironic before 24.1. Tests share the real Ironic and its discovered nodes, and recognise their own by
// Product.
func StartDiscovery(t testing.TB) *Site {
	t.Helper()
	if os.Getenv(endpointVariable) != "" && os.Getenv(discoveryEndpointVariable) == "" {
		t.Fatalf("%s is set, so %s must be too; for an Ironic that cannot discover: -skip ^TestAccDiscover", endpointVariable,
			discoveryEndpointVariable)
	}
	return start(t, os.Getenv(discoveryEndpointVariable), &fakeironic.Server{Discovery: true, DefaultResourceClass: "discovered"})
}

// Product returns the product name of the test's machines, which is unique to the test.
func (s *Site) Product() string { return "Rack One " + s.unique }

// Machine returns the data that the ramdisk of the test's nth machine posts: serial number SN-<unique>-n, hostname
// host-<unique>-n, booted from MAC(n). The caller may change the result. n is at most 255.
func (s *Site) Machine(n int) map[string]any {
	s.t.Helper()
	data := fakeironic.SampleInventory(n)
	inventory := Part[map[string]any](s.t, data, "inventory")
	inventory["hostname"] = fmt.Sprintf("host-%s-%d", s.unique, n)
	vendor := Part[map[string]any](s.t, inventory, "system_vendor")
	vendor["serial_number"] = fmt.Sprintf("SN-%s-%d", s.unique, n)
	vendor["product_name"] = s.Product()
	for i, item := range Part[[]any](s.t, inventory, "interfaces") {
		card, _ := item.(map[string]any)
		card["mac_address"] = fmt.Sprintf("%x%s", 0x52+4*i, s.MAC(n)[2:])
	}
	Part[map[string]any](s.t, inventory, "boot")["pxe_interface"] = s.MAC(n)
	data["boot_interface"] = s.MAC(n)
	return data
}

// Discover posts data (see Machine) as the ramdisk of an unknown machine does. It waits until Ironic has processed the data and
// returns the UUID of the new node.
func (s *Site) Discover(data map[string]any) string {
	s.t.Helper()
	return s.DiscoverAll(data)[0]
}

// DiscoverAll is Discover for several machines that post at the same time.
func (s *Site) DiscoverAll(machines ...map[string]any) []string {
	s.t.Helper()
	var uuids []string
	for _, data := range machines {
		status, answer := s.CallAt("1.84", http.MethodPost, "continue_inspection", data)
		if status != http.StatusAccepted {
			s.t.Fatalf("discovery: %d %v", status, answer)
		}
		uuids = append(uuids, Part[string](s.t, Part[map[string]any](s.t, answer, "node"), "uuid"))
		s.discovered = append(s.discovered, uuids[len(uuids)-1])
	}
	for _, uuid := range uuids {
		s.Await(uuid, "provision_state", "enroll")
	}
	return uuids
}

// DiscoverGhost creates a duplicate node of a machine: it has the inventory of the machine, and no ports. Ironic creates one if the
// ramdisk posts its data twice at the same time. Call DiscoverGhost before Discover with the same data. It returns the UUID of the
// node.
func (s *Site) DiscoverGhost(data map[string]any) string {
	s.t.Helper()
	uuid := s.Discover(data)
	for _, item := range Part[[]any](s.t, s.Must(http.MethodGet, "nodes/"+uuid+"/ports", nil), "ports") {
		port, _ := item.(map[string]any)
		s.Must(http.MethodDelete, "ports/"+Part[string](s.t, port, "uuid"), nil)
	}
	return uuid
}
