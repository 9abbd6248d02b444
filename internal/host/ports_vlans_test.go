package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// object decodes a JSON object.
func object(t *testing.T, text string) decide.Value[map[string]any] {
	t.Helper()
	if text == "" {
		return decide.Value[map[string]any]{}
	}
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(text, err)
	}
	return decide.Known(value)
}

var link = decide.Known(map[string]string{"switch_id": "52:54:00:aa:00:01", "port_id": "Ethernet1/1"})

// switched is a wish with one port that is connected and does not boot, and its extra.
func switched(t *testing.T, extra string) host.PortsWish {
	t.Helper()
	port := host.Port{PXE: decide.Known(false), Link: link, Extra: object(t, extra)}
	return host.PortsWish{Label: "web", Ports: ports(port), Planned: ports(port)}
}

func TestDecide_refusesSwitchportsThatIronicDoesNotConfigure(t *testing.T) {
	t.Parallel()
	long := "[" + strings.Repeat("1,", 100) + "2]"
	for switchport, want := range map[string]string{
		`{"mode":"access","native_vlan":110}`:                        "",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":[110,120]}`: "",
		`{}`:                                                            "",
		`"access"`:                                                      "switchport must be an object",
		`{"mode":"access"}`:                                             "native_vlan is missing.",
		`{"native_vlan":110}`:                                           `mode is missing. Set it to "access" or "trunk".`,
		`{"mode":"routed","native_vlan":110}`:                           `mode is "routed". Set it to "access" or "trunk".`,
		`{"mode":"access","native_vlan":"110"}`:                         `native_vlan is the text "110". VLANs are numbers: write 110, without quotation marks.`,
		`{"mode":"access","native_vlan":4095}`:                          "native_vlan is 4095. It must be a VLAN from 1 to 4094.",
		`{"mode":"access","native_vlan":1.5}`:                           "native_vlan is 1.5.",
		`{"mode":"access","native_vlan":true}`:                          "native_vlan is true.",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":110}`:          "It must be a list of VLANs",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":["110"]}`:      "VLANs are numbers",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":[null]}`:       "an element of allowed_vlans is null.",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":[2,2]}`:        "allowed_vlans has 2 twice.",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":` + long + `}`: "Ironic accepts 100.",
		`{"mode":"trunk","native_vlan":1}`:                              "needs allowed_vlans with at least one VLAN",
		`{"mode":"trunk","native_vlan":1,"allowed_vlans":[]}`:           "needs allowed_vlans with at least one VLAN",
		`{"mode":"access","native_vlan":1,"allowed_vlans":[2]}`:         "Remove allowed_vlans",
		`{"mode":"hybrid","native_vlan":1,"allowed_vlans":[2]}`:         `configures "access" and "trunk" only, so the next deployment would fail`,
		`{"mode":"access","native_vlan":1,"speed":1}`:                   `and not "speed".`,
		`{"mode":"access","native_vlan":1,"mtu":9217}`:                  "mtu is 9217.",
		`{"mode":"access","native_vlan":1,"lag_name":7}`:                "lag_name must be a text",
		`{"mode":"access","native_vlan":1,"aggregation_mode":"lacp"}`:   `and not "aggregation_mode".`,
	} {
		for name, seen := range map[string]host.PortsSeen{
			"configured by Ironic": {Interface: host.SwitchInterface, Server: 115},
			"not known":            {},
		} {
			notices := host.DecidePorts(switched(t, `{"switchport":`+switchport+`}`), seen)
			if want == "" && len(notices) > 0 || want != "" && (len(notices) != 1 || !decide.Refused(notices) ||
				!strings.Contains(notices[0].Detail, want)) {
				t.Errorf("%s, network interface %s: %v, want %q", switchport, name, notices, want)
			}
		}
	}
}

func TestDecide_switchportNeedsItsLinkAndBootsInAccessMode(t *testing.T) {
	t.Parallel()
	const access, trunk = `{"switchport":{"mode":"access","native_vlan":110}}`,
		`{"switchport":{"mode":"trunk","native_vlan":1,"allowed_vlans":[2]}}`
	yes, no, open := decide.Known(true), decide.Known(false), decide.Unknown[bool]()
	for what, tt := range map[string]struct {
		extra          string
		asked, planned decide.Value[bool]
		link           decide.Value[map[string]string]
		inspects       bool
		refused        string
	}{
		"access boots":           {access, yes, yes, link, false, ""},
		"trunk does not":         {trunk, no, no, link, false, ""},
		"trunk boots":            {trunk, yes, yes, link, false, "pxe_enabled"},
		"trunk boots by default": {trunk, decide.Value[bool]{}, open, link, false, "pxe_enabled"},
		"trunk boots already":    {trunk, decide.Value[bool]{}, yes, link, false, "pxe_enabled"},
		"boot is not known yet":  {trunk, open, open, link, false, ""},
		"no link":                {access, no, no, decide.Value[map[string]string]{}, false, "local_link_connection"},
		"half a link": {
			access, no, no, decide.Known(map[string]string{"switch_id": "52:54:00:aa:00:01"}), false,
			"local_link_connection",
		},
		"inspection finds it":   {access, no, no, decide.Value[map[string]string]{}, true, ""},
		"link is not known yet": {access, no, no, decide.Unknown[map[string]string](), false, ""},
	} {
		w := switched(t, tt.extra)
		w.Inspects = tt.inspects
		w.Ports[portMAC(1)] = host.Port{PXE: tt.asked, Link: tt.link, Extra: object(t, tt.extra)}
		w.Planned[portMAC(1)] = host.Port{PXE: tt.planned, Link: tt.link, Extra: object(t, tt.extra)}
		var want []refusal
		if tt.refused != "" {
			want = []refusal{{portAt(1, tt.refused), "Switch port cannot be configured"}}
		}
		wantRefusals(t, what, host.DecidePorts(w, host.PortsSeen{Interface: host.SwitchInterface}), want...)
	}
}

func TestDecide_refusesBondsThatIronicRefuses(t *testing.T) {
	t.Parallel()
	const vlans = `{"switchport":{"mode":"access","native_vlan":110}}`
	good := `{"lag":{"mode":"trunk","aggregation_mode":"lacp","allowed_vlans":[110]}}`
	member := func(group, extra string) host.Port {
		p := host.Port{PXE: decide.Known(false), Link: link, Extra: object(t, extra)}
		if group != "" {
			p.Group = decide.Known(group)
		}
		return p
	}
	for what, tt := range map[string]struct {
		lag    string
		member host.Port
		want   string
	}{
		"good":           {good, member("bond0", vlans), ""},
		"no mode":        {`{"lag":{"aggregation_mode":"lacp"}}`, member("bond0", vlans), "mode is missing"},
		"no aggregation": {`{"lag":{"mode":"access"}}`, member("bond0", vlans), "aggregation_mode is missing."},
		"wrong aggregation": {
			`{"lag":{"mode":"access","aggregation_mode":"802.3ad"}}`, member("bond0", vlans),
			`Set it to "lacp" or "static".`,
		},
		"hybrid":             {`{"lag":{"mode":"hybrid","aggregation_mode":"lacp","allowed_vlans":[1]}}`, member("bond0", vlans), "hybrid"},
		"no ports":           {good, member("", vlans), "lag needs at least one port in the group."},
		"port without VLANs": {good, member("bond0", ""), "port " + portMAC(1) + " has none."},
	} {
		w := host.PortsWish{
			Label: "web", Ports: ports(tt.member), Planned: ports(tt.member),
			Groups: map[string]host.PortGroup{"bond0": {Extra: object(t, tt.lag)}},
		}
		var refused []string
		for _, n := range host.DecidePorts(w, host.PortsSeen{Interface: host.SwitchInterface}) {
			if n.Severity == decide.Refusal {
				refused = append(refused, n.Detail)
			}
		}
		if len(refused) > 1 || (len(refused) == 0) != (tt.want == "") || len(refused) == 1 && !strings.Contains(refused[0], tt.want) {
			t.Errorf("%s: %q, want %q", what, refused, tt.want)
		}
	}
}

// What nothing reads, or Ironic ignores, is said when it changes.
func TestDecide_warnsOfSwitchportsThatDoNothing(t *testing.T) {
	t.Parallel()
	const wrong, good, mtu = `{"switchport":{"mode":"mine"}}`, `{"switchport":{"mode":"access","native_vlan":110}}`,
		`{"switchport":{"mode":"access","native_vlan":110,"mtu":9000}}`
	for what, tt := range map[string]struct {
		extra, before string
		seen          host.PortsSeen
		want          string // of a warning
	}{
		"another interface": {
			wrong, "",
			host.PortsSeen{Interface: "noop", Server: 115},
			"The network interface of host web is noop.",
		},
		"another interface, as before": {wrong, wrong, host.PortsSeen{Interface: "noop", Server: 115}, ""},
		"an older Ironic": {
			wrong, "",
			host.PortsSeen{Interface: "noop", Server: 82},
			"Ironic configures switch ports since version 35",
		},
		"an older Ironic, not known which": {good, "", host.PortsSeen{Server: 82}, "The newest API of this Ironic is 1.82"},
		"no switchport at all":             {`{"rack":1}`, "", host.PortsSeen{Interface: "noop", Server: 82}, ""},
		"an MTU": {
			mtu, "",
			host.PortsSeen{Interface: host.SwitchInterface, Server: 115},
			"Ironic stores mtu of host web.",
		},
		"an MTU, as before": {mtu, mtu, host.PortsSeen{Interface: host.SwitchInterface, Server: 115}, ""},
		"good":              {good, "", host.PortsSeen{Interface: host.SwitchInterface, Server: 115}, ""},
	} {
		if tt.before != "" {
			tt.seen.Ports = switched(t, tt.before).Ports
		}
		notices := host.DecidePorts(switched(t, tt.extra), tt.seen)
		if decide.Refused(notices) || len(notices) > 1 || (len(notices) == 0) != (tt.want == "") || len(notices) == 1 &&
			!strings.Contains(notices[0].Detail, tt.want) {
			t.Errorf("%s: %v, want %q", what, notices, tt.want)
		}
	}
}

// Ironic changes the VLANs of a machine that runs at once. The plan says so, and only then.
func TestDecide_saysThatVLANsOfARunningMachineChange(t *testing.T) {
	t.Parallel()
	const first, second = `{"switchport":{"mode":"access","native_vlan":110}}`,
		`{"switchport":{"mode":"trunk","native_vlan":1,"allowed_vlans":[120,130]}}`
	other := decide.Known(map[string]string{"switch_id": "52:54:00:aa:00:01", "port_id": "Ethernet1/2"})
	for what, tt := range map[string]struct {
		before, after string
		link          decide.Value[map[string]string]
		state         ironic.State
		network       string
		want          string
	}{
		"VLANs change": {first, second, link, "active", host.SwitchInterface, "port " + portMAC(1) +
			" from access VLAN 110 to trunk VLAN 1 with 120,130."},
		"VLANs come": {"", first, link, "active", host.SwitchInterface, "from no VLANs of Ironic to access VLAN 110."},
		"VLANs go":   {first, "", link, "active", host.SwitchInterface, "from access VLAN 110 to no VLANs of Ironic."},
		"the port goes": {first, "removed", link, "active", host.SwitchInterface, "port " + portMAC(1) +
			", which is removed, from access VLAN 110 to no VLANs of Ironic."},
		"a plain port goes":  {"", "removed", link, "active", host.SwitchInterface, ""},
		"another cable":      {first, first, other, "active", host.SwitchInterface, "with access VLAN 110 to another port of a switch."},
		"in rescue mode":     {first, second, link, "rescue", host.SwitchInterface, "from access VLAN 110"},
		"nothing changes":    {first, first, link, "active", host.SwitchInterface, ""},
		"nothing runs":       {first, second, link, "available", host.SwitchInterface, ""},
		"nothing reads them": {first, `{"note":1}`, link, "active", "noop", ""},
	} {
		w := switched(t, strings.TrimPrefix(tt.after, "removed"))
		port := w.Planned[portMAC(1)]
		port.Link = tt.link
		w.Planned[portMAC(1)] = port
		if tt.after == "removed" {
			w = host.PortsWish{Label: "web", Removed: []string{portMAC(1)}}
		}
		seen := host.PortsSeen{State: tt.state, Interface: tt.network, Server: 115, Ports: switched(t, tt.before).Ports}
		notices := host.DecidePorts(w, seen)
		if decide.Refused(notices) || len(notices) > 1 || (len(notices) == 0) != (tt.want == "") || len(notices) == 1 &&
			(notices[0].Summary != "VLANs of a running machine change" || !strings.Contains(notices[0].Detail, tt.want)) {
			t.Errorf("%s: %v, want %q", what, notices, tt.want)
		}
	}
}
