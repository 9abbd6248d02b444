package cabling_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
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
		"the same":                    {leaf("Ethernet1/1"), "leaf-1", "Ethernet1/1", true},
		"short":                       {leaf("Eth1/1"), "leaf-1", "Ethernet1/1", true},
		"shorter":                     {leaf("Ethernet1/1"), "LEAF-1", "et1/1", true},
		"with a space":                {leaf("Ethernet 1/1"), "leaf-1", "eth1/1", true},
		"with a zero byte":            {leaf("Eth1/1\x00"), "leaf-1", "Ethernet1/1", true},
		"another port":                {leaf("Ethernet1/11"), "leaf-1", "Ethernet1/1", false},
		"another speed":               {leaf("GigabitEthernet1/1"), "leaf-1", "TenGigabitEthernet1/1", false},
		"ten gigabit":                 {leaf("TenGigE0/0/0/1"), "leaf-1", "Te0/0/0/1", true},
		"Junos is not Ethernet":       {leaf("et-0/0/1"), "leaf-1", "Ethernet0/0/1", false},
		"Junos with its unit":         {leaf("xe-0/0/1.0"), "leaf-1", "xe-0/0/1", true},
		"Cumulus":                     {leaf("swp1"), "leaf-1", "swp1", true},
		"a port of another name":      {leaf("swp1"), "leaf-1", "swp11", false},
		"another switch":              {leaf("Ethernet1/1"), "leaf-2", "Ethernet1/1", false},
		"a switch with a domain":      {leaf("Ethernet1/1"), "leaf-1.example.com", "Ethernet1/1", true},
		"another domain":              {ironic.Neighbour{SwitchName: "leaf-1.a.example.com", PortID: "swp1"}, "leaf-1.b.example.com", "swp1", false},
		"a chassis ID":                {leaf("Ethernet1/1"), "5254.00EE.0001", "Ethernet1/1", true},
		"another chassis ID":          {leaf("Ethernet1/1"), "52:54:00:ee:00:02", "Ethernet1/1", false},
		"an address":                  {ironic.Neighbour{SwitchID: "192.0.2.1", PortID: "swp1"}, "192.0.2.1", "swp1", true},
		"a chassis ID that is a text": {ironic.Neighbour{SwitchID: "Rack12", PortID: "swp1"}, "rack12", "swp1", true},
		"no name":                     {ironic.Neighbour{PortID: "swp1"}, "leaf-1", "swp1", false},
		"a number with a description": {ironic.Neighbour{SwitchName: "leaf-1", PortID: "17", PortDescription: "Ethernet1/1"}, "leaf-1", "Eth1/1", true},
		"a MAC address as the port":   {ironic.Neighbour{SwitchName: "leaf-1", PortID: "52:54:00:ee:01:01"}, "leaf-1", "5254.00ee.0101", true},
		"a description beside a name": {ironic.Neighbour{SwitchName: "leaf-1", PortID: "Ethernet1/2", PortDescription: "Ethernet1/1", PortIsName: true}, "leaf-1", "Ethernet1/1", false},
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
		"the right port":   {card(cabling.Card{Neighbour: ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp1"}, Listened: true}), cabling.Right, true, true},
		"another port":     {card(cabling.Card{Neighbour: ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp2"}, Listened: true}), cabling.Wrong, false, true},
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
			text := fmt.Sprintf(`{"interfaces": [{"name": %q, "mac_address": %q}, {"name": %q, "mac_address": %q}]}`, names[0], mac, names[1], mac)
			if err := json.Unmarshal([]byte(text), inventory); err != nil {
				t.Fatal(err)
			}
			if got := cabling.HearingOf(inventory, time.Now()).Prove(mac, cabling.End{Switch: "leaf-1", Port: "swp1"}); got != cabling.Right {
				t.Errorf("%v with %v: %s", names, ofVLAN, got)
			}
		}
	}
}

// What a plan says of the cables of a host r1, whose cards 1 and 2 belong to the ports swp1 and swp2 of leaf-1.
func TestDecide_provesCables(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC)
	one, two := cabling.End{Switch: "leaf-1", Port: "swp1"}, cabling.End{Switch: "leaf-1", Port: "swp2"}
	expected := map[string]cabling.End{macOf(1): one, macOf(2): two}
	wish := cabling.Wish{Label: "r1", Ports: ports(cabling.Port{End: decide.Known(one)}, cabling.Port{End: decide.Known(two)})}
	heard := func(first, second string) *cabling.Hearing {
		h := &cabling.Hearing{At: at, Cards: map[string]cabling.Card{}}
		for i, port := range []string{first, second} {
			switch port {
			case "no card":
			case "nameless":
				h.Cards[macOf(i+1)] = cabling.Card{Listened: true, Neighbour: ironic.Neighbour{SwitchID: "52:54:00:ee:00:01", PortID: "swp1"}}
			case "deaf":
				h.Cards[macOf(i+1)] = cabling.Card{}
			case "silent":
				h.Cards[macOf(i+1)] = cabling.Card{Listened: true}
			case "no link":
				h.Cards[macOf(i+1)] = cabling.Card{Listened: true, NoLink: true}
			default:
				h.Cards[macOf(i+1)] = cabling.Card{Listened: true, Neighbour: ironic.Neighbour{SwitchName: "leaf-1", PortID: port, PortIsName: true}}
			}
		}
		return h
	}
	other := cabling.Cable{Host: "r2", MAC: macOf(9), Want: cabling.End{Switch: "leaf-1", Port: "swp9"}, Heard: ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp1"}}
	moved := other
	moved.Heard.PortID = "swp7"
	wrong := "Cables of host r1 are not as expected: "
	for name, tt := range map[string]struct {
		heard *cabling.Hearing
		since time.Time
		ends  map[string]cabling.End
		other []cabling.Cable
		says  string // the title and the beginning of the text; "" if nothing
	}{
		"no inspection":                     {ends: expected},
		"right cables":                      {heard: heard("swp1", "swp2"), ends: expected},
		"one that the ramdisk did not hear": {heard: heard("swp1", "deaf"), ends: expected, says: "Cables are not proved: The inspection of host r1 at 2026-11-26T05:00:00Z has collected no LLDP data of 1 of the network cards"},
		"a wrong cable":                     {heard: heard("swp3", "swp2"), ends: expected, says: wrong + macOf(1) + " is connected to leaf-1 swp3, not to leaf-1 swp1. "},
		"a switch without a name":           {heard: heard("nameless", "swp2"), ends: expected, says: wrong + macOf(1) + " is connected to 52:54:00:ee:00:01 swp1, not to leaf-1 swp1 (that switch announces no name: expect its chassis ID). "},
		"a wrong cable, and one not heard":  {heard: heard("swp3", "deaf"), ends: expected, says: wrong + macOf(1) + " is connected to leaf-1 swp3, not to leaf-1 swp1. "},
		"a silent switch":                   {heard: heard("swp1", "silent"), ends: expected, says: wrong + macOf(2) + " has heard no switch: the cable is out, or the switch sends no LLDP (expected: leaf-1 swp2). "},
		"no link":                           {heard: heard("no link", "swp2"), ends: expected, says: wrong + macOf(1) + " has no link (expected: leaf-1 swp1). "},
		"no card":                           {heard: heard("no card", "swp2"), ends: expected, says: wrong + "The machine has no network card " + macOf(1) + " (expected: at leaf-1 swp1). "},
		"swapped cables":                    {heard: heard("swp2", "swp1"), ends: expected, says: wrong + "The cables of " + macOf(1) + " and " + macOf(2) + " are swapped (leaf-1 swp1 and leaf-1 swp2). "},
		"swapped with another host":         {heard: heard("swp9", "swp2"), ends: expected, other: []cabling.Cable{other}, says: wrong + "The cables of " + macOf(1) + " and of " + macOf(9) + " of host r2 are swapped (leaf-1 swp1 and leaf-1 swp9). "},
		"in the place of another host":      {heard: heard("swp9", "swp2"), ends: expected, other: []cabling.Cable{moved}, says: wrong + macOf(1) + " is connected to leaf-1 swp9, not to leaf-1 swp1, which is for " + macOf(9) + " of host r2. "},
		"an older inspection":               {heard: heard("swp3", "swp2"), since: at.Add(time.Second), ends: expected, says: "Cables of host r1 are to be inspected again: " + macOf(1) + " is connected"},
		"an expectation that changes now":   {heard: heard("swp3", "swp2"), ends: map[string]cabling.End{macOf(1): two}, says: "Cables of host r1 are to be inspected again: " + macOf(1) + " is connected"},
		"an older inspection that fits":     {heard: heard("swp1", "swp2"), since: at.Add(time.Second), ends: expected},
	} {
		notices, says := cabling.Decide(wish, cabling.Seen{Heard: tt.heard, Since: tt.since, Ends: tt.ends, Other: tt.other}), ""
		for _, n := range notices {
			says += n.Summary + ": " + n.Detail
		}
		if len(notices) > 1 || !strings.HasPrefix(says, tt.says) || tt.says == "" && says != "" || decide.Refused(notices) {
			t.Errorf("%s: says %q, want %q", name, says, tt.says)
		}
	}
	open := cabling.Wish{Label: "r1", Ports: ports(cabling.Port{End: decide.Unknown[cabling.End]()})}
	if notices := cabling.Decide(open, cabling.Seen{Heard: heard("swp3", "swp2")}); len(notices) > 0 {
		t.Errorf("an expectation that is not known says %v", notices)
	}
}
