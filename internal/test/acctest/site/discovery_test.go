package site_test

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The fake creates the same node for an unknown machine as Ironic: this test runs on both.
func TestAccDiscoverMachine_becomesANode(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	machine := s.Machine(1)
	uuid := s.Discover(machine)

	node := s.Node(uuid)
	want := map[string]any{
		"name": nil, "driver": "fake-hardware", "driver_info": map[string]any{}, "resource_class": "discovered", "extra": map[string]any{},
		"inspect_interface": "agent", "properties": map[string]any{"cpu_arch": "x86_64"}, "power_state": "power off", "last_error": nil,
	}
	for attribute, value := range want {
		if !reflect.DeepEqual(node[attribute], value) {
			t.Errorf("%s is %v, want %v", attribute, node[attribute], value)
		}
	}
	if got := addresses(s, uuid); fmt.Sprint(got) != fmt.Sprintf("[%s]", s.MAC(1)) {
		t.Errorf("ports are %v, want %s", got, s.MAC(1))
	}
	answer := s.Must(http.MethodGet, "nodes/"+uuid+"/inventory", nil)
	if !reflect.DeepEqual(answer["inventory"], machine["inventory"]) {
		t.Errorf("inventory is %v, want %v", answer["inventory"], machine["inventory"])
	}
	plugin, _ := answer["plugin_data"].(map[string]any)
	if plugin["auto_discovered"] != true || fmt.Sprint(plugin["macs"]) != fmt.Sprintf("[%s]", s.MAC(1)) {
		t.Errorf("plugin_data is %v", plugin)
	}
}

func TestAccDiscoverMachine_ghostsHaveNoPorts(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	ghost, host := s.DiscoverGhost(s.Machine(1)), s.Discover(s.Machine(1))
	if ghosts, ports := addresses(s, ghost), addresses(s, host); len(ghosts) != 0 || len(ports) != 1 {
		t.Errorf("ports are %v and %v, want none and one", ghosts, ports)
	}
	for _, uuid := range []string{ghost, host} {
		s.Must(http.MethodGet, "nodes/"+uuid+"/inventory", nil)
	}
}

// addresses returns the MAC addresses of a node's ports.
func addresses(s *site.Site, uuid string) []any {
	list := []any{}
	ports, _ := s.Must(http.MethodGet, "nodes/"+uuid+"/ports", nil)["ports"].([]any)
	for _, item := range ports {
		port, _ := item.(map[string]any)
		list = append(list, port["address"])
	}
	return list
}
