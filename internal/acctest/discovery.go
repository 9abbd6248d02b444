package acctest

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// StartDiscovery is Start with an Ironic that makes nodes of unknown machines. Tests that use it are named
// TestAccDiscover…, so that they can be left out where Ironic is older than 24.1 and cannot do that. The real Ironic is
// shared with other tests, and so are its discovered nodes: tests tell their own apart by Product.
func StartDiscovery(t testing.TB) *Site {
	t.Helper()
	if os.Getenv(endpointVariable) != "" && os.Getenv(discoveryEndpointVariable) == "" {
		t.Fatalf("%s is set, so %s must be too; for an Ironic that cannot discover: -skip ^TestAccDiscover", endpointVariable, discoveryEndpointVariable)
	}
	return start(t, os.Getenv(discoveryEndpointVariable), &fakeironic.Server{Discovery: true, DefaultResourceClass: "discovered"})
}

// Product is the product name of the test's machines, which no others have.
func (s *Site) Product() string { return "Rack One " + s.unique }

// Machine is what the ramdisk of the nth machine of the test posts: serial number SN-<unique>-n, hostname
// host-<unique>-n; it boots from MAC(n). The result is the caller's own, to be changed at will. n is at most 255.
func (s *Site) Machine(n int) map[string]any {
	s.t.Helper()
	data := fakeironic.SampleInventory(n)
	inventory := part[map[string]any](s.t, data, "inventory")
	inventory["hostname"] = fmt.Sprintf("host-%s-%d", s.unique, n)
	vendor := part[map[string]any](s.t, inventory, "system_vendor")
	vendor["serial_number"] = fmt.Sprintf("SN-%s-%d", s.unique, n)
	vendor["product_name"] = s.Product()
	for i, item := range part[[]any](s.t, inventory, "interfaces") {
		card, _ := item.(map[string]any)
		card["mac_address"] = fmt.Sprintf("%x%s", 0x52+4*i, s.MAC(n)[2:])
	}
	part[map[string]any](s.t, inventory, "boot")["pxe_interface"] = s.MAC(n)
	data["boot_interface"] = s.MAC(n)
	return data
}

// part is a member of a JSON object.
func part[T any](t testing.TB, object map[string]any, key string) T {
	t.Helper()
	value, ok := object[key].(T)
	if !ok {
		t.Fatalf("%s is %v", key, object[key])
	}
	return value
}

// Discover is an unknown machine that boots the ramdisk, which posts data (see Machine). It returns the UUID of the new
// node, once Ironic has processed the data.
func (s *Site) Discover(data map[string]any) string {
	s.t.Helper()
	return s.DiscoverAll(data)[0]
}

// DiscoverAll is Discover for machines that are switched on together.
func (s *Site) DiscoverAll(machines ...map[string]any) []string {
	s.t.Helper()
	var uuids []string
	for _, data := range machines {
		status, answer := s.callAt("1.84", http.MethodPost, "continue_inspection", data)
		if status != http.StatusAccepted {
			s.t.Fatalf("discovery: %d %v", status, answer)
		}
		uuids = append(uuids, part[string](s.t, part[map[string]any](s.t, answer, "node"), "uuid"))
		s.discovered = append(s.discovered, uuids[len(uuids)-1])
	}
	for _, uuid := range uuids {
		s.Await(uuid, "provision_state", "enroll")
	}
	return uuids
}

// DiscoverGhost makes what posts leave that reach Ironic at the same moment as the one that counts: a node of the machine
// that has its inventory but no ports. To be called before the machine's Discover; it returns the UUID of the ghost.
func (s *Site) DiscoverGhost(data map[string]any) string {
	s.t.Helper()
	uuid := s.Discover(data)
	for _, item := range part[[]any](s.t, s.Must(http.MethodGet, "nodes/"+uuid+"/ports", nil), "ports") {
		port, _ := item.(map[string]any)
		s.Must(http.MethodDelete, "ports/"+part[string](s.t, port, "uuid"), nil)
	}
	return uuid
}
