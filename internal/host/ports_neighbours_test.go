package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// What a plan says of the cables of a host r1, whose cards 1 and 2 belong to the ports swp1 and swp2 of leaf-1.
func TestDecide_provesCables(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC)
	one, two := cabling.End{Switch: "leaf-1", Port: "swp1"}, cabling.End{Switch: "leaf-1", Port: "swp2"}
	expected := map[string]cabling.End{portMAC(1): one, portMAC(2): two}
	wish := host.PortsWish{Label: "r1", Ports: ports(host.Port{End: decide.Known(one)}, host.Port{End: decide.Known(two)})}
	heard := func(first, second string) *cabling.Hearing {
		h := &cabling.Hearing{At: at, Cards: map[string]cabling.Card{}}
		for i, port := range []string{first, second} {
			switch port {
			case "no card":
			case "nameless":
				h.Cards[portMAC(i+1)] = cabling.Card{Listened: true, Neighbour: ironic.Neighbour{
					SwitchID: "52:54:00:ee:00:01",
					PortID:   "swp1",
				}}
			case "deaf":
				h.Cards[portMAC(i+1)] = cabling.Card{}
			case "silent":
				h.Cards[portMAC(i+1)] = cabling.Card{Listened: true}
			case "no link":
				h.Cards[portMAC(i+1)] = cabling.Card{Listened: true, NoLink: true}
			default:
				h.Cards[portMAC(i+1)] = cabling.Card{Listened: true, Neighbour: ironic.Neighbour{
					SwitchName: "leaf-1", PortID: port,
					PortIsName: true,
				}}
			}
		}
		return h
	}
	other := host.Cable{
		Host: "r2", MAC: portMAC(9), Want: cabling.End{Switch: "leaf-1", Port: "swp9"},
		Heard: ironic.Neighbour{SwitchName: "leaf-1", PortID: "swp1"},
	}
	moved := other
	moved.Heard.PortID = "swp7"
	wrong := "Cables of host r1 are not as expected: "
	for name, tt := range map[string]struct {
		heard *cabling.Hearing
		since time.Time
		ends  map[string]cabling.End
		other []host.Cable
		says  string // the title and the beginning of the text; "" if nothing
	}{
		"no inspection": {ends: expected},
		"right cables":  {heard: heard("swp1", "swp2"), ends: expected},
		"one that the ramdisk did not hear": {heard: heard("swp1", "deaf"), ends: expected, says: "Cables are not proved: The inspection " +
			"of host r1 at 2026-11-26T05:00:00Z has collected no LLDP data of 1 of the network cards"},
		"a wrong cable": {heard: heard("swp3", "swp2"), ends: expected, says: wrong + portMAC(1) +
			" is connected to leaf-1 swp3, not to leaf-1 swp1. "},
		"a switch without a name": {heard: heard("nameless", "swp2"), ends: expected, says: wrong + portMAC(1) +
			" is connected to 52:54:00:ee:00:01 swp1, not to leaf-1 swp1 (that switch announces no name: expect its chassis ID). "},
		"a wrong cable, and one not heard": {heard: heard("swp3", "deaf"), ends: expected, says: wrong + portMAC(1) +
			" is connected to leaf-1 swp3, not to leaf-1 swp1. "},
		"a silent switch": {heard: heard("swp1", "silent"), ends: expected, says: wrong + portMAC(2) +
			" has heard no switch: the cable is out, or the switch sends no LLDP (expected: leaf-1 swp2). "},
		"no link": {heard: heard("no link", "swp2"), ends: expected, says: wrong + portMAC(1) +
			" has no link (expected: leaf-1 swp1). "},
		"no card": {heard: heard("no card", "swp2"), ends: expected, says: wrong +
			"The machine has no network card " + portMAC(1) + " (expected: at leaf-1 swp1). "},
		"swapped cables": {heard: heard("swp2", "swp1"), ends: expected, says: wrong + "The cables of " + portMAC(1) +
			" and " + portMAC(2) + " are swapped (leaf-1 swp1 and leaf-1 swp2). "},
		"swapped with another host": {heard: heard("swp9", "swp2"), ends: expected, other: []host.Cable{other}, says: wrong +
			"The cables of " + portMAC(1) + " and of " + portMAC(9) + " of host r2 are swapped (leaf-1 swp1 and leaf-1 swp9). "},
		"in the place of another host": {heard: heard("swp9", "swp2"), ends: expected, other: []host.Cable{moved}, says: wrong +
			portMAC(1) + " is connected to leaf-1 swp9, not to leaf-1 swp1, which is for " + portMAC(9) + " of host r2. "},
		"an older inspection": {
			heard: heard("swp3", "swp2"), since: at.Add(time.Second), ends: expected,
			says: "Cables of host r1 are to be inspected again: " + portMAC(1) + " is connected",
		},
		"an expectation that changes now": {
			heard: heard("swp3", "swp2"), ends: map[string]cabling.End{portMAC(1): two},
			says: "Cables of host r1 are to be inspected again: " + portMAC(1) + " is connected",
		},
		"an older inspection that fits": {heard: heard("swp1", "swp2"), since: at.Add(time.Second), ends: expected},
	} {
		notices, says := host.DecidePorts(wish, host.PortsSeen{Heard: tt.heard, Since: tt.since, Ends: tt.ends, Other: tt.other}), ""
		for _, n := range notices {
			says += n.Summary + ": " + n.Detail
		}
		if len(notices) > 1 || !strings.HasPrefix(says, tt.says) || tt.says == "" && says != "" || decide.Refused(notices) {
			t.Errorf("%s: says %q, want %q", name, says, tt.says)
		}
	}
	open := host.PortsWish{Label: "r1", Ports: ports(host.Port{End: decide.Unknown[cabling.End]()})}
	if notices := host.DecidePorts(open, host.PortsSeen{Heard: heard("swp3", "swp2")}); len(notices) > 0 {
		t.Errorf("an expectation that is not known says %v", notices)
	}
}
