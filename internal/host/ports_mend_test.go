package host_test

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

type jsonObject = map[string]any

var (
	access110 = jsonObject{"mode": "access", "native_vlan": 110.0}
	trunk120  = jsonObject{"mode": "trunk", "native_vlan": 1.0, "allowed_vlans": []any{120.0}}
	lacp      = jsonObject{"mode": "trunk", "aggregation_mode": "lacp", "allowed_vlans": []any{120.0}}
)

const switchID = "52:54:00:aa:00:01"

// portOf returns what is wanted of the nth port: connected to Ethernet1/n, without network boot.
func portOf(n int, switchport any) ironic.PortSpec {
	boots := false
	spec := ironic.PortSpec{Address: portMAC(n), PXEEnabled: &boots, LocalLinkConnection: jsonObject{
		"switch_id": switchID,
		"port_id":   "Ethernet1/" + string(rune('0'+n)),
	}}
	if switchport != nil {
		spec.Extra = jsonObject{"switchport": switchport}
	}
	return spec
}

// wanted returns a cabling of ports, each in the group bond0 with a bond, if that is not nil.
func wanted(bond any, specs ...ironic.PortSpec) host.WantedCables {
	want := host.WantedCables{Ports: map[string]ironic.PortSpec{}, Members: map[string]string{}, Groups: map[string]ironic.PortGroupSpec{}}
	for _, spec := range specs {
		want.Ports[spec.Address] = spec
		if bond != nil {
			want.Members[spec.Address], want.Groups["bond0"] = "bond0", ironic.PortGroupSpec{Extra: jsonObject{"lag": bond}}
		}
	}
	return want
}

// onSwitches is a node in a state whose switch ports Ironic configures.
func onSwitches(t *testing.T, state string) *wired {
	t.Helper()
	c := newNode(t, &fakeironic.Server{SwitchPorts: true}, state)
	c.fake.Set(c.machine.Node().UUID, "network_interface", host.SwitchInterface)
	if err := c.machine.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.isNew = false
	return c
}

// store makes a port of the node as another client would, which Ironic does not check.
func (c *wired) store(n int, fields jsonObject) {
	c.t.Helper()
	all := jsonObject{"node_uuid": c.machine.Node().UUID, "address": portMAC(n), "pxe_enabled": false}
	maps.Copy(all, fields)
	if err := c.client.Ironic.Request(c.t.Context(), http.MethodPost, "ports", all, nil); err != nil {
		c.t.Fatal(err)
	}
	c.fake.ResetRequests()
}

func (c *wired) vlans(n int) jsonObject {
	return c.fake.SwitchPort(switchID, "Ethernet1/"+string(rune('0'+n)))
}

// A new port gets its link and its switch port by one request; on a machine that runs, Ironic configures the switch.
func TestApply_newSwitchPorts(t *testing.T) {
	t.Parallel()
	for state, sent := range map[string][]string{"manageable": {"POST ports"}, "active": {"POST ports", "PATCH ports"}} {
		c := onSwitches(t, state)
		c.writes()
		has := c.to(wanted(nil, portOf(1, access110)))
		if got := c.writes(); !slices.Equal(got, sent) || !ironic.SameJSON(has.Ports[portMAC(1)].Extra,
			jsonObject{"switchport": access110}) {
			t.Errorf("%s: sent %v, and the port has %v", state, got, has.Ports[portMAC(1)].Extra)
		}
		if is := len(c.vlans(1)) > 0; is != (state == "active") {
			t.Errorf("%s: the switch has %v", state, c.vlans(1))
		}
	}
}

// A change on a machine that runs needs no maintenance, as long as the cables stay.
func TestApply_changesTheVLANsOfARunningMachine(t *testing.T) {
	t.Parallel()
	c := onSwitches(t, "active")
	c.to(wanted(nil, portOf(1, access110)))
	c.writes()
	c.to(wanted(nil, portOf(1, trunk120)))
	if got := c.writes(); !slices.Equal(got, []string{"PATCH ports"}) || !reflect.DeepEqual(c.vlans(1), trunk120) {
		t.Errorf("sent %v, and the switch has %v", got, c.vlans(1))
	}
	want := wanted(nil, portOf(1, nil))
	spec := want.Ports[portMAC(1)]
	spec.Without = []string{"switchport"}
	want.Ports[portMAC(1)] = spec
	c.to(want)
	if got := c.vlans(1); len(got) > 0 {
		t.Errorf("the switch still has %v", got)
	}
	c.to(wanted(nil, portOf(1, access110), portOf(2, nil)))
	gone := wanted(nil, portOf(2, nil))
	gone.WithoutPorts = []string{portMAC(1)}
	if has := c.to(gone); len(has.Ports) != 1 || len(c.vlans(1)) > 0 {
		t.Errorf("ports %v; the switch port of the removed one has %v", has.Ports, c.vlans(1))
	}
}

// A stored port that Ironic refuses holds up every change of the node's ports: it is deleted and made again, with what the configuration
// leaves to Ironic.
func TestApply_makesInvalidSwitchPortsAgain(t *testing.T) {
	t.Parallel()
	connected := jsonObject{"switch_id": switchID, "port_id": "Ethernet1/1"}
	for what, stored := range map[string]jsonObject{
		"wrong VLAN": {
			"local_link_connection": connected,
			"extra":                 jsonObject{"switchport": jsonObject{"mode": "access", "native_vlan": "110"}},
		},
		"no link":       {"extra": jsonObject{"switchport": access110}},
		"trunk boots":   {"local_link_connection": connected, "pxe_enabled": true, "extra": jsonObject{"switchport": trunk120}},
		"not an object": {"local_link_connection": connected, "extra": jsonObject{"switchport": "110"}},
		"unknown member": {
			"local_link_connection": connected,
			"extra":                 jsonObject{"switchport": jsonObject{"mode": "access", "native_vlan": 110.0, "vlan": 1.0}},
		},
	} {
		for _, state := range []string{"manageable", "active"} {
			c := onSwitches(t, state)
			stored["name"], stored["category"] = "eno1", "tenant"
			stored["extra"].(jsonObject)["asset"] = 7.0
			c.store(1, stored)
			c.store(2, nil)
			has := c.to(wanted(nil, portOf(1, access110), portOf(2, nil)))
			port := has.Ports[portMAC(1)]
			if port.Name != "eno1" || port.Category != "tenant" ||
				!ironic.SameJSON(port.Extra, jsonObject{"switchport": access110, "asset": 7.0}) {
				t.Errorf("%s, %s: the port is %+v", what, state, port)
			}
			if sent := c.writes(); sent[0] != "DELETE ports" || len(has.Ports[portMAC(2)].LocalLinkConnection) == 0 {
				t.Errorf("%s, %s: sent %v", what, state, sent)
			}
			if is := len(c.vlans(1)) > 0; is != (state == "active") {
				t.Errorf("%s, %s: the switch has %v", what, state, c.vlans(1))
			}
		}
	}
}

// A port that waits for the inspection that finds its switch is not made again as long as no port changes.
func TestApply_leavesPortsThatWaitForTheirLink(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"manageable", "active"} {
		c := onSwitches(t, state)
		c.store(1, jsonObject{"extra": jsonObject{"switchport": access110}})
		waits := ironic.PortSpec{Address: portMAC(1), Extra: jsonObject{"switchport": access110}}
		c.to(wanted(nil, waits))
		if sent := c.writes(); len(sent) > 0 {
			t.Errorf("%s: sent %v", state, sent)
		}
		has := c.to(wanted(nil, waits, portOf(2, nil)))
		if got := has.Ports[portMAC(1)].Extra; !ironic.SameJSON(got, waits.Extra) || len(has.Ports) != 2 {
			t.Errorf("%s: the ports are %v", state, has.Ports)
		}
	}
}

// Ironic refuses all changes while a bond has no ports, or ports without VLANs: it comes last and goes first.
func TestApply_bondsComeAfterTheirPorts(t *testing.T) {
	t.Parallel()
	static := maps.Clone(lacp)
	static["aggregation_mode"] = "static"
	for _, state := range []string{"manageable", "active"} {
		c := onSwitches(t, state)
		c.to(wanted(nil, portOf(1, nil)))
		gone := wanted(nil, portOf(1, trunk120), portOf(2, trunk120))
		gone.Members, gone.WithoutGroups = map[string]string{portMAC(1): "", portMAC(2): ""}, []string{"bond0"}
		for i, step := range []host.WantedCables{
			wanted(lacp, portOf(1, trunk120)), wanted(lacp, portOf(1, trunk120), portOf(2, trunk120)),
			wanted(static, portOf(2, trunk120), portOf(3, trunk120)), gone,
		} {
			has := c.to(step)
			for key, spec := range step.Groups {
				if got := has.Groups[key].Extra; !ironic.SameJSON(got, spec.Extra) {
					t.Errorf("%s, step %d: group %s has %v", state, i, key, got)
				}
			}
			for mac, key := range step.Members {
				if got := has.GroupOf(has.Ports[mac]); got != key {
					t.Errorf("%s, step %d: port %s is in %q", state, i, mac, got)
				}
			}
		}
		if got := ironictest.NodeOf(t, c.fake, "web").Maintenance; got {
			t.Error("the node stayed in maintenance")
		}
	}
}

// A bond that Ironic refuses is made again with its ports, and keeps what the configuration leaves to Ironic.
func TestApply_makesInvalidBondsAgain(t *testing.T) {
	t.Parallel()
	c := onSwitches(t, "manageable")
	c.to(wanted(lacp, portOf(1, trunk120), portOf(2, trunk120)))
	for _, id := range []string{portUUID(c, 1), portUUID(c, 2)} {
		ironictest.AsOther(t, c.fake, http.MethodDelete, "ports/"+id, nil)
	}
	c.store(1, jsonObject{"portgroup_uuid": c.read().Groups["bond0"].UUID}) // without VLANs
	has := c.to(wanted(lacp, portOf(1, trunk120), portOf(2, trunk120)))
	if got := groupsOf(has, 2); !slices.Equal(got, []string{"bond0", "bond0"}) || !ironic.SameJSON(has.Groups["bond0"].Extra,
		jsonObject{"lag": lacp}) {
		t.Errorf("the ports are in %v, and the group has %v", got, has.Groups["bond0"].Extra)
	}
	if sent := strings.Join(c.writes(), ", "); !strings.HasPrefix(sent, "DELETE ports, DELETE portgroups, POST portgroups") {
		t.Errorf("sent %s", sent)
	}
}

func (c *wired) read() host.Cables {
	c.t.Helper()
	has, err := host.ReadCables(c.t.Context(), c.client.Site, c.machine.Node().UUID, true)
	if err != nil {
		c.t.Fatal(err)
	}
	return has
}

func portUUID(c *wired, n int) string { return c.read().Ports[portMAC(n)].UUID }

// A port goes with the physical network of its group. Ironic moves both at once where it can, without maintenance.
func TestApply_portsInheritTheNetworkOfTheirGroup(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"manageable", "active"} {
		c := newNode(t, &fakeironic.Server{}, state)
		want := wanted(nil)
		for n := range 2 {
			mac := portMAC(n + 1)
			want.Ports[mac], want.Members[mac] = ironic.PortSpec{Address: mac}, "bond0"
		}
		for _, network := range []string{"rack12", "rack13"} {
			want.Groups["bond0"] = ironic.PortGroupSpec{PhysicalNetwork: network}
			c.writes()
			has := c.to(want)
			for mac, port := range has.Ports {
				if port.PhysicalNetwork != network || has.Groups["bond0"].PhysicalNetwork != network {
					t.Errorf("%s: port %s is on %q, and its group on %q, want %q", state, mac, port.PhysicalNetwork,
						has.Groups["bond0"].PhysicalNetwork, network)
				}
			}
			if sent := c.writes(); network == "rack13" && !slices.Equal(sent, []string{"PATCH portgroups"}) {
				t.Errorf("%s: sent %v", state, sent)
			}
		}
		// Another client has changed the group alone: its patch begins with something else.
		apart := []jsonObject{
			{"op": "add", "path": "/mode", "value": "802.3ad"},
			{"op": "add", "path": "/physical_network", "value": "rack14"},
		}
		if err := c.client.Ironic.Request(t.Context(), http.MethodPatch, "portgroups/"+c.read().Groups["bond0"].UUID, apart,
			nil); err != nil {
			t.Fatal(err)
		}
		want.Groups["bond0"] = ironic.PortGroupSpec{PhysicalNetwork: "rack14"}
		c.writes()
		for mac, port := range c.to(want).Ports {
			if port.PhysicalNetwork != "rack14" {
				t.Errorf("%s: port %s is on %q after a change of the group alone", state, mac, port.PhysicalNetwork)
			}
		}
		if sent := c.writes(); !slices.Equal(sent, []string{"PATCH portgroups"}) {
			t.Errorf("%s: sent %v", state, sent)
		}
		// A port that comes later, and one that had another network.
		want.Groups["bond0"] = ironic.PortGroupSpec{}
		c.store(3, jsonObject{"physical_network": "old"})
		for _, n := range []int{3, 4} {
			want.Ports[portMAC(n)], want.Members[portMAC(n)] = ironic.PortSpec{Address: portMAC(n)}, "bond0"
		}
		for mac, port := range c.to(want).Ports {
			if port.PhysicalNetwork != "rack14" {
				t.Errorf("%s: port %s is on %q", state, mac, port.PhysicalNetwork)
			}
		}
	}
}

// A group that Ironic has made for VIFs is not one of the configuration, and its ports stay in it.
func TestApply_leavesGroupsOfVIFsAlone(t *testing.T) {
	t.Parallel()
	c := newNode(t, &fakeironic.Server{}, "active")
	c.to(wanted(nil, portOf(1, nil), portOf(2, nil)))
	c.fake.GroupForVIFs(portMAC(1), portMAC(2))
	c.writes()
	want := wanted(nil, portOf(1, nil), portOf(2, nil))
	want.Groups["bond0"] = ironic.PortGroupSpec{}
	has := c.to(want)
	if sent := c.writes(); !slices.Equal(sent, []string{"POST portgroups"}) || len(has.Groups) != 1 ||
		has.GroupOf(has.Ports[portMAC(1)]) != "" || has.Ports[portMAC(1)].PortGroupUUID == "" {
		t.Errorf("sent %v; groups %v, port %+v", sent, has.Groups, has.Ports[portMAC(1)])
	}
}

// dying is a connection that ends after some writes.
type dying struct {
	next http.RoundTripper
	left int
	kill func()
}

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if d.left == 0 {
			d.kill()
			return nil, context.Canceled
		}
		d.left--
	}
	return d.next.RoundTrip(r)
}

// The next run finishes what a run was killed in, after each of its writes.
func TestApply_goesOnAfterAKill(t *testing.T) {
	t.Parallel()
	want := wanted(lacp, portOf(1, trunk120), portOf(2, trunk120), portOf(3, trunk120))
	for writes, killed := 0, true; killed; writes++ {
		c := onSwitches(t, "manageable")
		c.to(wanted(lacp, portOf(1, trunk120)))
		c.store(2, jsonObject{"extra": jsonObject{"switchport": jsonObject{"mode": "access", "native_vlan": "110"}}})
		ctx, cancel := context.WithCancel(t.Context())
		run := sitetest.NewClient(c.fake, func(config *machine.Config) {
			config.Transport = &dying{next: c.fake, left: writes, kill: cancel}
		})
		first, err := run.Machine(ctx, c.machine.Node().UUID)
		if err == nil {
			_, err = host.ApplyPorts(ctx, first, want, false)
		}
		cancel()
		killed = err != nil
		has := c.to(want)
		if got := groupsOf(has, 3); !slices.Equal(got, []string{"bond0", "bond0", "bond0"}) || !ironic.SameJSON(has.Groups["bond0"].Extra,
			jsonObject{"lag": lacp}) || !ironic.SameJSON(has.Ports[portMAC(2)].Extra, jsonObject{"switchport": trunk120}) {
			t.Fatalf("killed after %d writes: the ports are in %v, port 2 has %v, and the group %v", writes, got,
				has.Ports[portMAC(2)].Extra, has.Groups["bond0"].Extra)
		}
		if writes > 20 {
			t.Fatal("the run does not end")
		}
	}
}
