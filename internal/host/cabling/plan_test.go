package cabling_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// refusal is a notice as its attribute and summary.
type refusal struct {
	at      decide.Path
	summary string
}

// wantRefusals fails unless notices are some refusals, in this order.
func wantRefusals(t *testing.T, what string, notices []decide.Notice, want ...refusal) {
	t.Helper()
	var got []refusal
	for _, n := range notices {
		got = append(got, refusal{n.At, n.Summary})
	}
	if !reflect.DeepEqual(got, want) || len(got) > 0 && !decide.Refused(notices) {
		t.Errorf("%s: %v, want %v", what, notices, want)
	}
}

// portAt is the path of an attribute of the nth port.
func portAt(n int, attribute string) decide.Path {
	return decide.At("ports", decide.Key(macOf(n)), attribute)
}

// ports returns ports 1 to n by MAC address.
func ports(all ...cabling.Port) map[string]cabling.Port {
	byMAC := map[string]cabling.Port{}
	for i, port := range all {
		byMAC[macOf(i+1)] = port
	}
	return byMAC
}

func TestCheck_portsAndGroupsFitEachOther(t *testing.T) {
	t.Parallel()
	text := decide.Known[string]
	bond := map[string]cabling.Group{"bond0": {}}
	for what, tt := range map[string]struct {
		wish cabling.Wish
		want []refusal
	}{
		"nothing":          {cabling.Wish{}, nil},
		"two names":        {cabling.Wish{Ports: ports(cabling.Port{Name: text("a")}, cabling.Port{Name: text("b")})}, nil},
		"one name":         {cabling.Wish{Ports: ports(cabling.Port{Name: text("a")}, cabling.Port{Name: text("a")})}, []refusal{{portAt(2, "name"), "Two ports with one name"}}},
		"its group":        {cabling.Wish{Ports: ports(cabling.Port{Group: text("bond0")}), Groups: bond}, nil},
		"no such group":    {cabling.Wish{Ports: ports(cabling.Port{Group: text("bond1")}), Groups: bond}, []refusal{{portAt(1, "port_group"), "Unknown port group"}}},
		"groups not known": {cabling.Wish{Ports: ports(cabling.Port{Group: text("bond1")}), OpenGroups: true}, nil},
		"two networks": {
			cabling.Wish{Ports: ports(cabling.Port{Group: text("bond0"), Network: text("a")}, cabling.Port{Group: text("bond0")}, cabling.Port{Group: text("bond0"), Network: text("b")}), Groups: bond},
			[]refusal{{portAt(3, "physical_network"), "Port group on two networks"}},
		},
		"one MAC address": {
			cabling.Wish{Groups: map[string]cabling.Group{"bond0": {MAC: text(macOf(9))}, "bond1": {MAC: text(macOf(9))}, "bond2": {}, "bond3": {}}},
			[]refusal{{decide.At("port_groups", decide.Key("bond1"), "mac"), "Two port groups with one MAC address"}},
		},
	} {
		wantRefusals(t, what, cabling.Check(tt.wish), tt.want...)
	}
}

// Ironic refuses a port without a physical network in a group that has one, at each apply.
func TestDecide_portsOfAGroupNeedItsNetwork(t *testing.T) {
	t.Parallel()
	port := func(group, network string) cabling.Port {
		p := cabling.Port{Group: decide.Known(group), Network: decide.Known(network)}
		p.Group.Set, p.Network.Set = group != "", network != ""
		return p
	}
	open := cabling.Port{Group: decide.Known("bond0"), Network: decide.Unknown[string]()}
	for what, tt := range map[string]struct {
		first, second cabling.Port
		refused       int // 0: none
	}{
		"the same":       {port("bond0", "prov"), port("bond0", "prov"), 0},
		"none":           {port("bond0", ""), port("bond0", ""), 0},
		"missing":        {port("bond0", "prov"), port("bond0", ""), 2},
		"missing before": {port("bond0", ""), port("bond0", "prov"), 1},
		"not known yet":  {port("bond0", "prov"), open, 0},
		"other group":    {port("bond0", "prov"), port("bond1", "other"), 0},
		"without group":  {port("bond0", "prov"), port("", ""), 0},
		"kept, not same": {port("bond0", "prov"), port("bond0", "other"), 2},
	} {
		var want []refusal
		if tt.refused > 0 {
			want = []refusal{{portAt(tt.refused, "physical_network"), "Port group on two networks"}}
		}
		wantRefusals(t, what, cabling.Decide(cabling.Wish{Planned: ports(tt.first, tt.second)}, cabling.Seen{}), want...)
	}
}

// A new port of a group without standalone ports may not boot; Ironic has such ports if they were changed later.
func TestDecide_newPortsOfAGroupBootAloneOnlyIfItLetsThem(t *testing.T) {
	t.Parallel()
	yes, no := decide.Known(true), decide.Known(false)
	for what, tt := range map[string]struct {
		boots, standalone decide.Value[bool]
		exists, refused   bool
	}{
		"may":              {yes, yes, false, false},
		"default of both":  {decide.Value[bool]{}, no, false, false},
		"does not boot":    {no, no, false, false},
		"boots":            {yes, no, false, true},
		"boots already":    {yes, no, true, false},
		"group not known":  {yes, decide.Unknown[bool](), false, false},
		"group by default": {yes, decide.Value[bool]{}, false, false},
	} {
		wish := cabling.Wish{Ports: ports(cabling.Port{Group: decide.Known("bond0"), PXE: tt.boots}), Groups: map[string]cabling.Group{"bond0": {Standalone: tt.standalone}}}
		var want []refusal
		seen := cabling.Seen{}
		if tt.exists {
			seen.Ports = ports(cabling.Port{})
		}
		if tt.refused {
			want = []refusal{{portAt(1, "pxe_enabled"), "Port cannot boot alone"}}
		}
		wantRefusals(t, what, cabling.Decide(wish, seen), want...)
	}
}

func TestDecide_namesOfPortsAreUnique(t *testing.T) {
	t.Parallel()
	eno1, eno2 := cabling.Port{Name: decide.Known("eno1")}, cabling.Port{Name: decide.Known("eno2")}
	kept := cabling.Wish{Ports: ports(cabling.Port{}, eno1), Planned: ports(eno1, eno1)}
	wantRefusals(t, "the other port keeps it", cabling.Decide(kept, cabling.Seen{}), refusal{portAt(2, "name"), "Name of another port"})
	exchanged := cabling.Wish{Ports: ports(eno2, eno1), Planned: ports(eno2, eno1)}
	wantRefusals(t, "the other port gets another", cabling.Decide(exchanged, cabling.Seen{}))
}

// What a configuration does not contain any more is removed; what it never contained stays.
func TestApplied_tellsWhatIsRemoved(t *testing.T) {
	t.Parallel()
	before := cabling.Applied{Ports: []string{macOf(1), macOf(2)}, Members: []string{macOf(1)}, Groups: []string{"bond1", "bond0"}}
	for what, tt := range map[string]struct {
		port   int
		group  string
		leaves bool
	}{
		"named its group":     {1, "bond2", true},
		"its group stays":     {2, "bond2", false},
		"its group is lost":   {2, "bond0", true},
		"has no group at all": {2, "", false},
	} {
		if leaves := before.Leaves(macOf(tt.port), tt.group, []string{"bond2"}); leaves != tt.leaves {
			t.Errorf("%s: the port leaves: %v", what, leaves)
		}
	}
	want := before.Wanted(cabled(ironic.PortSpec{}, "").Ports, nil, nil)
	if !slices.Equal(want.WithoutPorts, []string{macOf(2)}) || !slices.Equal(want.WithoutGroups, []string{"bond0", "bond1"}) || want.Members[macOf(1)] != "" || len(want.Members) != 1 {
		t.Errorf("an apply makes %+v", want)
	}
}

// All ports of a group are on one physical network, and so is the group.
func TestApplied_groupGetsTheNetworkOfItsPorts(t *testing.T) {
	t.Parallel()
	asked := cabled(ironic.PortSpec{PhysicalNetwork: "prov"}, "bond0")
	want := cabling.Applied{}.Wanted(asked.Ports, asked.Members, nil)
	if got := want.Groups["bond0"].PhysicalNetwork; got != "prov" || want.Members[macOf(1)] != "bond0" {
		t.Errorf("the group is on network %q, and the ports are in %v", got, want.Members)
	}
}

// A plan says that Ironic does not delete a port with a VIF, or that it does, in maintenance.
func TestDecide_warnsOfRemovedPortsWithVIFs(t *testing.T) {
	t.Parallel()
	vifs := map[string]string{macOf(1): "", macOf(2): "v2", macOf(3): "v3"}
	for what, tt := range map[string]struct {
		removed []string
		held    bool
		want    string
	}{
		"a free port":       {[]string{macOf(1)}, false, ""},
		"a port that stays": {nil, false, ""},
		"a port with a VIF": {[]string{macOf(1), macOf(2)}, false, "Port has a VIF: VIF v2 is attached to port " + macOf(2) + " of host web. Unless"},
		"in maintenance":    {[]string{macOf(3)}, true, "Port is removed with its VIF: VIF v3 is attached to port " + macOf(3) + " of host web. The node is in maintenance"},
	} {
		says := ""
		for _, n := range cabling.Decide(cabling.Wish{Label: "web", Removed: tt.removed}, cabling.Seen{VIFs: vifs, Held: tt.held}) {
			says += n.Summary + ": " + n.Detail
		}
		if !strings.HasPrefix(says, tt.want) || tt.want == "" && says != "" {
			t.Errorf("%s: says %q, want %q", what, says, tt.want)
		}
	}
}
