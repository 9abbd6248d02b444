package host_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
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
	return decide.At("ports", decide.Key(portMAC(n)), attribute)
}

// ports returns ports 1 to n by MAC address.
func ports(all ...host.Port) map[string]host.Port {
	byMAC := map[string]host.Port{}
	for i, port := range all {
		byMAC[portMAC(i+1)] = port
	}
	return byMAC
}

func TestCheck_portsAndGroupsFitEachOther(t *testing.T) {
	t.Parallel()
	text := decide.Known[string]
	bond := map[string]host.PortGroup{"bond0": {}}
	for what, tt := range map[string]struct {
		wish host.PortsWish
		want []refusal
	}{
		"nothing":   {host.PortsWish{}, nil},
		"two names": {host.PortsWish{Ports: ports(host.Port{Name: text("a")}, host.Port{Name: text("b")})}, nil},
		"one name": {
			host.PortsWish{Ports: ports(host.Port{Name: text("a")}, host.Port{Name: text("a")})},
			[]refusal{{portAt(2, "name"), "Two ports with one name"}},
		},
		"its group": {host.PortsWish{Ports: ports(host.Port{Group: text("bond0")}), Groups: bond}, nil},
		"no such group": {
			host.PortsWish{Ports: ports(host.Port{Group: text("bond1")}), Groups: bond},
			[]refusal{{portAt(1, "port_group"), "Unknown port group"}},
		},
		"groups not known": {host.PortsWish{Ports: ports(host.Port{Group: text("bond1")}), OpenGroups: true}, nil},
		"two networks": {
			host.PortsWish{Ports: ports(host.Port{Group: text("bond0"), Network: text("a")}, host.Port{Group: text("bond0")},
				host.Port{Group: text("bond0"), Network: text("b")}), Groups: bond},
			[]refusal{{portAt(3, "physical_network"), "Port group on two networks"}},
		},
		"one MAC address": {
			host.PortsWish{Groups: map[string]host.PortGroup{
				"bond0": {MAC: text(portMAC(9))}, "bond1": {MAC: text(portMAC(9))},
				"bond2": {}, "bond3": {},
			}},
			[]refusal{{decide.At("port_groups", decide.Key("bond1"), "mac"), "Two port groups with one MAC address"}},
		},
	} {
		wantRefusals(t, what, host.CheckPorts(tt.wish), tt.want...)
	}
}

// Ironic refuses a port without a physical network in a group that has one, at each apply.
func TestDecide_portsOfAGroupNeedItsNetwork(t *testing.T) {
	t.Parallel()
	port := func(group, network string) host.Port {
		p := host.Port{Group: decide.Known(group), Network: decide.Known(network)}
		p.Group.Set, p.Network.Set = group != "", network != ""
		return p
	}
	open := host.Port{Group: decide.Known("bond0"), Network: decide.Unknown[string]()}
	for what, tt := range map[string]struct {
		first, second host.Port
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
		wantRefusals(t, what, host.DecidePorts(host.PortsWish{Planned: ports(tt.first, tt.second)}, host.PortsSeen{}), want...)
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
		wish := host.PortsWish{
			Ports:  ports(host.Port{Group: decide.Known("bond0"), PXE: tt.boots}),
			Groups: map[string]host.PortGroup{"bond0": {Standalone: tt.standalone}},
		}
		var want []refusal
		seen := host.PortsSeen{}
		if tt.exists {
			seen.Ports = ports(host.Port{})
		}
		if tt.refused {
			want = []refusal{{portAt(1, "pxe_enabled"), "Port cannot boot alone"}}
		}
		wantRefusals(t, what, host.DecidePorts(wish, seen), want...)
	}
}

func TestDecide_namesOfPortsAreUnique(t *testing.T) {
	t.Parallel()
	eno1, eno2 := host.Port{Name: decide.Known("eno1")}, host.Port{Name: decide.Known("eno2")}
	kept := host.PortsWish{Ports: ports(host.Port{}, eno1), Planned: ports(eno1, eno1)}
	wantRefusals(t, "the other port keeps it", host.DecidePorts(kept, host.PortsSeen{}), refusal{portAt(2, "name"), "Name of another port"})
	exchanged := host.PortsWish{Ports: ports(eno2, eno1), Planned: ports(eno2, eno1)}
	wantRefusals(t, "the other port gets another", host.DecidePorts(exchanged, host.PortsSeen{}))
}

// What a configuration does not contain any more is removed; what it never contained stays.
func TestApplied_tellsWhatIsRemoved(t *testing.T) {
	t.Parallel()
	before := host.AppliedPorts{Ports: []string{portMAC(1), portMAC(2)}, Members: []string{portMAC(1)}, Groups: []string{"bond1", "bond0"}}
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
		if leaves := before.Leaves(portMAC(tt.port), tt.group, []string{"bond2"}); leaves != tt.leaves {
			t.Errorf("%s: the port leaves: %v", what, leaves)
		}
	}
	want := before.Wanted(cabled(ironic.PortSpec{}, "").Ports, nil, nil)
	if !slices.Equal(want.WithoutPorts, []string{portMAC(2)}) || !slices.Equal(want.WithoutGroups, []string{"bond0", "bond1"}) ||
		want.Members[portMAC(1)] != "" || len(want.Members) != 1 {
		t.Errorf("an apply makes %+v", want)
	}
}

// All ports of a group are on one physical network, and so is the group.
func TestApplied_groupGetsTheNetworkOfItsPorts(t *testing.T) {
	t.Parallel()
	asked := cabled(ironic.PortSpec{PhysicalNetwork: "prov"}, "bond0")
	want := host.AppliedPorts{}.Wanted(asked.Ports, asked.Members, nil)
	if got := want.Groups["bond0"].PhysicalNetwork; got != "prov" || want.Members[portMAC(1)] != "bond0" {
		t.Errorf("the group is on network %q, and the ports are in %v", got, want.Members)
	}
}

// A plan says that Ironic does not delete a port with a VIF, or that it does, in maintenance.
func TestDecide_warnsOfRemovedPortsWithVIFs(t *testing.T) {
	t.Parallel()
	vifs := map[string]string{portMAC(1): "", portMAC(2): "v2", portMAC(3): "v3"}
	for what, tt := range map[string]struct {
		removed []string
		held    bool
		want    string
	}{
		"a free port":       {[]string{portMAC(1)}, false, ""},
		"a port that stays": {nil, false, ""},
		"a port with a VIF": {[]string{portMAC(1), portMAC(2)}, false, "Port has a VIF: VIF v2 is attached to port " + portMAC(2) +
			" of host web. Unless"},
		"in maintenance": {[]string{portMAC(3)}, true, "Port is removed with its VIF: VIF v3 is attached to port " + portMAC(3) +
			" of host web. The node is in maintenance"},
	} {
		says := ""
		for _, n := range host.DecidePorts(host.PortsWish{Label: "web", Removed: tt.removed}, host.PortsSeen{VIFs: vifs, Held: tt.held}) {
			says += n.Summary + ": " + n.Detail
		}
		if !strings.HasPrefix(says, tt.want) || tt.want == "" && says != "" {
			t.Errorf("%s: says %q, want %q", what, says, tt.want)
		}
	}
}
