package host_test

import (
	"fmt"
	"maps"
	"net/http"
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

// portMAC is the MAC address of the nth port.
func portMAC(n int) string { return fmt.Sprintf("52:54:01:00:00:%02x", n) }

// cabled returns a cabling with ports 1 to n of some settings, in the groups with the given keys; an empty key: the port leaves its group.
func cabled(spec ironic.PortSpec, keys ...string) host.WantedCables {
	want := host.WantedCables{Ports: map[string]ironic.PortSpec{}, Members: map[string]string{}, Groups: map[string]ironic.PortGroupSpec{}}
	for i, key := range keys {
		spec.Address = portMAC(i + 1)
		want.Ports[spec.Address], want.Members[spec.Address] = spec, key
		if key != "" {
			want.Groups[key] = ironic.PortGroupSpec{PhysicalNetwork: spec.PhysicalNetwork}
		}
	}
	return want
}

// wired is a node in a state whose ports and groups are brought to one cabling after another.
type wired struct {
	t       *testing.T
	fake    *fakeironic.Server
	client  *sitetest.Client
	machine *machine.Machine
	isNew   bool
}

func newNode(t *testing.T, fake *fakeironic.Server, state string) *wired {
	t.Helper()
	client := sitetest.NewClient(fake)
	id := sitetest.Enrolled(t, client, "web")
	fake.Set(id, "provision_state", state)
	machine, err := client.Machine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return &wired{t: t, fake: fake, client: client, machine: machine, isNew: true}
}

// to brings the node to a cabling. What Apply returns is what Ironic has.
func (c *wired) to(want host.WantedCables) host.Cables {
	c.t.Helper()
	has, err := host.ApplyPorts(c.t.Context(), c.machine, want, c.isNew)
	if c.isNew = false; err != nil {
		c.t.Fatal(err)
	}
	now, err := host.ReadCables(c.t.Context(), c.client.Site, c.machine.Node().UUID, want.HasGroups())
	if got, want := shown(has), shown(now); err != nil || !slices.Equal(got, want) {
		c.t.Fatalf("Ironic has %q, %v; Apply returned %q", want, err, got)
	}
	if c.machine.Node().Maintenance != ironictest.NodeOf(c.t, c.fake, "web").Maintenance {
		c.t.Error("the record has another maintenance than the node")
	}
	return has
}

// shown returns ports and groups as texts.
func shown(has host.Cables) (texts []string) {
	for mac, port := range has.Ports {
		texts = append(texts, fmt.Sprintln(mac, port.Name, port.PhysicalNetwork, port.PXEEnabled, has.GroupOf(port)))
	}
	for key, group := range has.Groups {
		texts = append(texts, fmt.Sprintln(key, group.Name, group.Address, group.Mode, group.StandalonePorts))
	}
	slices.Sort(texts)
	return texts
}

// writes returns what was sent since the last call, without UUIDs: "PATCH ports", "PUT nodes".
func (c *wired) writes() (sent []string) {
	for _, r := range c.fake.Requests() {
		if r.Method != http.MethodGet {
			sent = append(sent, r.Method+" "+strings.Split(r.Path, "/")[2])
		}
	}
	c.fake.ResetRequests()
	return sent
}

// groupsOf returns the keys of the groups of ports 1 to n.
func groupsOf(has host.Cables, n int) (keys []string) {
	for i := range n {
		keys = append(keys, has.GroupOf(has.Ports[portMAC(i+1)]))
	}
	return keys
}

func TestApply_portsAndGroupsAreMadeMovedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newNode(t, &fakeironic.Server{}, "enroll")
	type keys = []string
	for _, step := range []struct {
		want    host.WantedCables
		members keys
		groups  keys
		sent    keys
	}{
		{
			cabled(ironic.PortSpec{}, "bond0", "bond0"),
			keys{"bond0", "bond0"},
			keys{"bond0"},
			keys{"POST portgroups", "POST ports", "POST ports"},
		},
		{cabled(ironic.PortSpec{}, "bond0", "bond0"), keys{"bond0", "bond0"}, keys{"bond0"}, nil},
		{
			cabled(ironic.PortSpec{}, "bond1", "bond0", ""),
			keys{"bond1", "bond0", ""},
			keys{"bond0", "bond1"},
			keys{"PATCH ports", "POST portgroups", "PATCH ports", "POST ports"},
		},
		{func() host.WantedCables {
			want := cabled(ironic.PortSpec{}, "bond1", "bond1")
			want.WithoutGroups, want.WithoutPorts = keys{"bond0"}, keys{portMAC(3), portMAC(9)}
			return want
		}(), keys{"bond1", "bond1"}, keys{"bond1"}, keys{"DELETE ports", "PATCH ports", "DELETE portgroups", "PATCH ports"}},
		{host.WantedCables{WithoutGroups: keys{"bond1"}}, keys{"", ""}, nil, keys{"PATCH ports", "PATCH ports", "DELETE portgroups"}},
	} {
		c.writes()
		has := c.to(step.want)
		if sent := c.writes(); !slices.Equal(sent, step.sent) {
			t.Errorf("sent %q, want %q", sent, step.sent)
		}
		if members, groups := groupsOf(has, len(step.members)), slices.Sorted(maps.Keys(has.Groups)); !slices.Equal(members,
			step.members) || !slices.Equal(groups, step.groups) {
			t.Errorf("the groups are %q, those of the ports %q, want %q and %q", groups, members, step.groups, step.members)
		}
	}
}

// Names of ports and MAC addresses of groups are unique in Ironic. Those of one node exchange them, or hand them on.
func TestApply_portsExchangeNamesAndGroupsAddresses(t *testing.T) {
	t.Parallel()
	c := newNode(t, &fakeironic.Server{}, "enroll")
	for _, step := range [][3]int{{1, 2, 0}, {2, 1, 0}, {1, 3, 2}, {2, 3, 1}} {
		want := cabled(ironic.PortSpec{}, "bond1", "bond2", "bond3")
		for i, of := range step {
			spec, group, key := want.Ports[portMAC(i+1)], ironic.PortGroupSpec{}, fmt.Sprintf("bond%d", i+1)
			if of != 0 {
				spec.Name, group.Address = fmt.Sprintf("eno%d", of), portMAC(0x10+of)
			}
			want.Ports[portMAC(i+1)], want.Groups[key] = spec, group
		}
		has := c.to(want)
		for i, of := range step {
			if name, address := has.Ports[portMAC(i+1)].Name, has.Groups[fmt.Sprintf("bond%d", i+1)].Address; of != 0 &&
				(name != fmt.Sprintf("eno%d", of) || address != portMAC(0x10+of)) {
				t.Errorf("%v: port %d is %q, and its group has the address %q", step, i+1, name, address)
			}
		}
	}
}

// All ports of a group are on one physical network, which changes for all of them at once. Before API 1.102, a group has no network of its
// own: the ports leave it, change, and return.
func TestApply_groupMovesToAnotherNetwork(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "1.82"} {
		c := newNode(t, &fakeironic.Server{MaxMicroversion: version}, "available")
		for _, network := range []string{"a", "b"} {
			has := c.to(cabled(ironic.PortSpec{PhysicalNetwork: network}, "bond0", "bond0"))
			for mac, port := range has.Ports {
				if port.PhysicalNetwork != network || has.GroupOf(port) != "bond0" {
					t.Errorf("API %s: port %s is on network %q in group %q", version, mac, port.PhysicalNetwork, has.GroupOf(port))
				}
			}
		}
	}
}

// Some network interfaces refuse standalone_ports = false while a port of the group may boot alone, so the ports change first.
func TestApply_standalonePortsEndAfterThePortsChange(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	c := newNode(t, &fakeironic.Server{}, "enroll")
	c.to(cabled(ironic.PortSpec{PXEEnabled: &yes}, "bond0"))
	c.writes()
	want := cabled(ironic.PortSpec{PXEEnabled: &no}, "bond0")
	want.Groups["bond0"] = ironic.PortGroupSpec{StandalonePorts: &no}
	c.to(want)
	if sent := c.writes(); !slices.Equal(sent, []string{"PATCH ports", "PATCH portgroups"}) {
		t.Errorf("sent %q", sent)
	}
}

// Ironic changes the connectivity of ports in maintenance only, once the node is available. Maintenance that others have set stays; that of
// a killed run ends.
func TestApply_reconnectsInMaintenance(t *testing.T) {
	t.Parallel()
	const killed = machine.ReasonChanging
	for _, state := range []string{"available", "active"} {
		for before, after := range map[string]string{"": "", "by hand": "by hand", killed: ""} {
			c := newNode(t, &fakeironic.Server{}, state)
			c.to(cabled(ironic.PortSpec{}, "", ""))
			c.fake.Set("web", "maintenance", before != "")
			c.fake.Set("web", "maintenance_reason", before)
			c.writes()
			has := c.to(cabled(ironic.PortSpec{}, "bond0", ""))
			sent := c.writes()
			if now := ironictest.NodeOf(t, c.fake, "web"); now.Maintenance != (after != "") ||
				has.GroupOf(has.Ports[portMAC(1)]) != "bond0" {
				t.Errorf("%s, in maintenance %q: the node is in maintenance: %v (%v)", state, before, now.Maintenance,
					now.Raw["maintenance_reason"])
			}
			if puts := slices.Contains(sent, "PUT nodes"); puts != (before == "") {
				t.Errorf("%s, in maintenance %q: sent %q", state, before, sent)
			}
		}
	}
}

// Recabling fails in the middle: the node leaves maintenance, the error names the port, and the next call finishes the work.
func TestApply_failureLeavesNoMaintenance(t *testing.T) {
	t.Parallel()
	c := newNode(t, &fakeironic.Server{}, "available")
	c.to(cabled(ironic.PortSpec{}, ""))
	c.fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/v1/ports/") {
			return &fakeironic.Rejection{Status: http.StatusForbidden}
		}
		return nil
	}
	want := cabled(ironic.PortSpec{}, "bond0")
	has, err := host.ApplyPorts(t.Context(), c.machine, want, false)
	if err == nil || !strings.HasPrefix(err.Error(), "port "+portMAC(1)+": ") || len(has.Groups) != 1 ||
		ironictest.NodeOf(t, c.fake, "web").Maintenance {
		t.Errorf("%v, the groups are %v, maintenance is %v", err, has.Groups, ironictest.NodeOf(t, c.fake, "web").Maintenance)
	}
	c.fake.Reject = nil
	if has := c.to(want); has.GroupOf(has.Ports[portMAC(1)]) != "bond0" {
		t.Errorf("the port is in no group: %+v", has)
	}
}

// Ironic deletes a port with a VIF while the node is in maintenance. A change that needs maintenance does not disconnect a running machine
// so.
func TestApply_keepsPortsWithVIFs(t *testing.T) {
	t.Parallel()
	c := newNode(t, &fakeironic.Server{}, "manageable")
	c.to(cabled(ironic.PortSpec{}, "", ""))
	node := c.machine.Node().UUID
	c.fake.Set(node, "network_interface", "flat")
	c.fake.Set(node, "provision_state", "active")
	if err := c.machine.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	const vif = "00000000-0000-4000-8000-000000000001"
	ironictest.AsOther(t, c.fake, http.MethodPost, "nodes/"+node+"/vifs",
		map[string]any{"id": vif, "port_uuid": c.read().Ports[portMAC(2)].UUID})
	want := cabled(ironic.PortSpec{LocalLinkConnection: map[string]any{"switch_id": "52:54:00:aa:00:01", "port_id": "1"}}, "")
	want.WithoutPorts = []string{portMAC(2)}
	has, err := host.ApplyPorts(t.Context(), c.machine, want, false)
	if err == nil || !strings.Contains(err.Error(), "bound to VIF "+vif) || len(has.Ports) != 2 {
		t.Errorf("the ports are %v, and the error is %v", has.Ports, err)
	}
	if ironictest.NodeOf(t, c.fake, node).Maintenance {
		t.Error("the node is in maintenance")
	}
}
