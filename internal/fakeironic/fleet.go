package fakeironic

import (
	"fmt"
	"net/http"
)

// AddFleet adds n available nodes of a resource class, named node-000 and on (skipping names that are taken), driven by
// fake-hardware: powered off, with properties, two ports and an inventory each. Every second one has the trait CUSTOM_NVME.
func (s *Server) AddFleet(n int, class string) {
	defer s.lock()()
	for number := 0; n > 0; number++ {
		name := fmt.Sprintf("node-%03d", number)
		if s.nodeByName[name] != nil {
			continue
		}
		n--
		s.addMachine(name, class, number)
	}
}

func (s *Server) addMachine(name, class string, number int) {
	c := &call{minor: s.maxMinor(), header: http.Header{}}
	fields := s.newNodeFields(c, map[string]any{
		"uuid": newUUID(), "name": name, "driver": "fake-hardware", "resource_class": class,
		"properties": map[string]any{
			"cpus": 32.0, "memory_mb": 131072.0, "local_gb": 893.0, "cpu_arch": "x86_64", "capabilities": "boot_mode:uefi",
		},
	})
	if err := settleInterfaces(fields); err != nil {
		panic(err) // fake-hardware has a default for everything
	}
	fields["provision_state"] = string(available)
	fields["provision_updated_at"] = timestamp(s.now)
	fields["power_state"] = powerOff
	if number%2 == 1 {
		fields["traits"] = []string{"CUSTOM_NVME"}
	}
	n := s.addNode(fields)
	for card := range 2 {
		mac := fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", number>>16&0xff, number>>8&0xff, number&0xff, card)
		s.addPort(n, newUUID(), mac, map[string]any{"pxe_enabled": card == 0})
	}
	s.discover(n)
}

// discover stores the inventory that an inspection of the node finds, unless there is one already.
func (s *Server) discover(n *node) {
	if n.inventory != nil {
		return
	}
	cards := []any{}
	boot := ""
	for _, p := range s.ports {
		if p.node != n {
			continue
		}
		if boot == "" {
			boot = p.address
		}
		cards = append(cards, networkCard(len(cards)+1, p.address, nil))
	}
	inventory := hardware(n.str("name"), fmt.Sprintf("SN%06d", n.order), fmt.Sprintf("192.0.2.%d", n.order%250+1), boot, cards)
	n.inventory = map[string]any{"inventory": inventory, "plugin_data": pluginData(nil, readCards(inventory))}
}
