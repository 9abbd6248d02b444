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
	interfaces := []any{}
	macs := []string{}
	for _, p := range s.ports {
		if p.node != n {
			continue
		}
		macs = append(macs, p.address)
		interfaces = append(interfaces, map[string]any{
			"name": fmt.Sprintf("eno%d", len(macs)), "mac_address": p.address, "ipv4_address": nil, "ipv6_address": nil,
			"has_carrier": len(macs) == 1, "vendor": "0x8086", "product": "0x1563", "speed_mbps": 10000,
		})
	}
	boot := map[string]any{"current_boot_mode": "uefi", "pxe_interface": nil}
	if len(macs) > 0 {
		boot["pxe_interface"] = macs[0]
	}
	n.inventory = map[string]any{
		"inventory": map[string]any{
			"hostname": n.str("name"), "bmc_address": fmt.Sprintf("192.0.2.%d", n.order%250+1), "bmc_v6address": "::/0",
			"system_vendor": map[string]any{
				"manufacturer": "Example Systems", "product_name": "Rack One", "serial_number": fmt.Sprintf("SN%06d", n.order),
			},
			"cpu":    map[string]any{"model_name": "Example CPU @ 2.10GHz", "count": 32, "architecture": "x86_64", "frequency": "2100", "flags": []any{}},
			"memory": map[string]any{"total": 134217728000, "physical_mb": 131072},
			"disks": []any{map[string]any{
				"name": "/dev/sda", "model": "Example SSD", "size": 960197124096, "rotational": false, "wwn": nil,
				"serial": fmt.Sprintf("DISK%06d", n.order), "vendor": "EXAMPLE", "hctl": "0:0:0:0",
			}},
			"interfaces": interfaces, "boot": boot,
		},
		"plugin_data": map[string]any{"macs": clone(macs)},
	}
}
