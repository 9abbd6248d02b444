package cabling_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Which neighbours are the expected one.
func TestMeets(t *testing.T) {
	t.Parallel()
	leaf := func(port string) ironic.Neighbour {
		return ironic.Neighbour{SwitchID: "52:54:00:ee:00:01", SwitchName: "leaf-1", PortID: port, PortIsName: true}
	}
	for name, tt := range map[string]struct {
		heard      ironic.Neighbour
		leaf, port string
		want       bool
	}{
		"the same":               {leaf("Ethernet1/1"), "leaf-1", "Ethernet1/1", true},
		"short":                  {leaf("Eth1/1"), "leaf-1", "Ethernet1/1", true},
		"shorter":                {leaf("Ethernet1/1"), "LEAF-1", "et1/1", true},
		"with a space":           {leaf("Ethernet 1/1"), "leaf-1", "eth1/1", true},
		"with a zero byte":       {leaf("Eth1/1\x00"), "leaf-1", "Ethernet1/1", true},
		"another port":           {leaf("Ethernet1/11"), "leaf-1", "Ethernet1/1", false},
		"another speed":          {leaf("GigabitEthernet1/1"), "leaf-1", "TenGigabitEthernet1/1", false},
		"ten gigabit":            {leaf("TenGigE0/0/0/1"), "leaf-1", "Te0/0/0/1", true},
		"Junos is not Ethernet":  {leaf("et-0/0/1"), "leaf-1", "Ethernet0/0/1", false},
		"Junos with its unit":    {leaf("xe-0/0/1.0"), "leaf-1", "xe-0/0/1", true},
		"Cumulus":                {leaf("swp1"), "leaf-1", "swp1", true},
		"a port of another name": {leaf("swp1"), "leaf-1", "swp11", false},
		"another switch":         {leaf("Ethernet1/1"), "leaf-2", "Ethernet1/1", false},
		"a switch with a domain": {leaf("Ethernet1/1"), "leaf-1.example.com", "Ethernet1/1", true},
		"another domain": {
			ironic.Neighbour{SwitchName: "leaf-1.a.example.com", PortID: "swp1"},
			"leaf-1.b.example.com",
			"swp1", false,
		},
		"a chassis ID":                {leaf("Ethernet1/1"), "5254.00EE.0001", "Ethernet1/1", true},
		"another chassis ID":          {leaf("Ethernet1/1"), "52:54:00:ee:00:02", "Ethernet1/1", false},
		"an address":                  {ironic.Neighbour{SwitchID: "192.0.2.1", PortID: "swp1"}, "192.0.2.1", "swp1", true},
		"a chassis ID that is a text": {ironic.Neighbour{SwitchID: "Rack12", PortID: "swp1"}, "rack12", "swp1", true},
		"no name":                     {ironic.Neighbour{PortID: "swp1"}, "leaf-1", "swp1", false},
		"a number with a description": {
			ironic.Neighbour{SwitchName: "leaf-1", PortID: "17", PortDescription: "Ethernet1/1"},
			"leaf-1",
			"Eth1/1", true,
		},
		"a MAC address as the port": {
			ironic.Neighbour{SwitchName: "leaf-1", PortID: "52:54:00:ee:01:01"},
			"leaf-1",
			"5254.00ee.0101", true,
		},
		"a description beside a name": {ironic.Neighbour{
			SwitchName: "leaf-1", PortID: "Ethernet1/2", PortDescription: "Ethernet1/1",
			PortIsName: true,
		}, "leaf-1", "Ethernet1/1", false},
	} {
		if got := cabling.Meets(tt.heard, cabling.End{Switch: tt.leaf, Port: tt.port}); got != tt.want {
			t.Errorf("%s: meets = %v, want %v", name, got, tt.want)
		}
	}
}

// What an inspection proves of a cable, and of a machine with that cable alone.
func TestHearing_proves(t *testing.T) {
	t.Parallel()
	const mac = "52:54:00:aa:00:01"
	card := func(c cabling.Card) map[string]cabling.Card { return map[string]cabling.Card{mac: c} }
	for name, tt := range map[string]struct {
		cards        map[string]cabling.Card
		want         cabling.Verdict
		right, known bool
	}{
		"the right port": {
			card(cabling.Card{Neighbour: ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp1"}, Listened: true}),
			cabling.Right, true, true,
		},
		"another port": {
			card(cabling.Card{Neighbour: ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp2"}, Listened: true}),
			cabling.Wrong, false, true,
		},
		"silence":          {card(cabling.Card{Listened: true}), cabling.Silent, false, true},
		"nothing listened": {card(cabling.Card{}), cabling.Unproved, false, false},
		"another card":     {map[string]cabling.Card{"52:54:00:aa:00:02": {}}, cabling.NoCard, false, true},
		"no inventory":     {nil, cabling.Unproved, false, false},
	} {
		h := cabling.Hearing{Cards: tt.cards}
		want := cabling.End{Switch: "leaf-1", Port: "swp1"}
		right, known := h.Proves(map[string]cabling.End{mac: want})
		if got := h.Prove(mac, want); got != tt.want || right != tt.right || known != tt.known {
			t.Errorf("%s: %s, right %v, known %v", name, got, right, known)
		}
	}
}

// A VLAN has the MAC address of its card, and hears no announcements.
func TestHearingOf_devicesWithOneAddress(t *testing.T) {
	t.Parallel()
	const mac = "52:54:00:aa:00:01"
	leaf := ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp1"}
	for _, names := range [][]string{{"eno1", "eno1.100"}, {"eno1.100", "eno1"}} {
		for _, ofVLAN := range []map[string]ironic.Neighbour{{"eno1": leaf}, {"eno1": leaf, "eno1.100": {}}} {
			inventory := &ironic.Inventory{Neighbours: ofVLAN}
			text := fmt.Sprintf(`{"interfaces": [{"name": %q, "mac_address": %q}, {"name": %q, "mac_address": %q}]}`, names[0],
				mac, names[1], mac)
			if err := json.Unmarshal([]byte(text), inventory); err != nil {
				t.Fatal(err)
			}
			got := cabling.HearingOf(inventory, time.Now()).Prove(mac, cabling.End{Switch: "leaf-1", Port: "swp1"})
			if got != cabling.Right {
				t.Errorf("%v with %v: %s", names, ofVLAN, got)
			}
		}
	}
}
