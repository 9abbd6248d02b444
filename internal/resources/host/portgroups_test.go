package host_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// cabled is the setting of ports and port groups: entries such as `bond0 = {}`, and the bodies of the ports by their number.
func cabled(s *site.Site, groups string, ports map[int]string) string {
	settings := "ports = {\n"
	if groups != "" {
		settings = "port_groups = { " + groups + " }\n  " + settings
	}
	for _, n := range slices.Sorted(maps.Keys(ports)) {
		settings += fmt.Sprintf("    %q = { %s }\n", s.MAC(n), ports[n])
	}
	return settings + "  }"
}

// groupsOn returns the port groups of a node in Ironic by name, without the UUID of the node.
func groupsOn(s *site.Site, node string) map[string]map[string]any {
	groups := map[string]map[string]any{}
	all, _ := s.Must(http.MethodGet, "portgroups/detail?node="+node, nil)["portgroups"].([]any)
	for _, one := range all {
		group, _ := one.(map[string]any)
		groups[strings.TrimSuffix(site.Text(group["name"]), "-"+site.Text(group["node_uuid"]))] = group
	}
	return groups
}

// bonds checks the port groups of the host's node in Ironic: their attributes, and the ports in them by their numbers.
type bonds struct {
	site *site.Site
	want map[string]bond
}

type bond struct {
	has     map[string]any
	members []int
}

// CheckState compares all groups of the node.
func (b bonds) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	groups := groupsOn(b.site, hostID(req.State))
	if got, want := slices.Sorted(maps.Keys(groups)), slices.Sorted(maps.Keys(b.want)); !slices.Equal(got, want) {
		resp.Error = fmt.Errorf("the node has the port groups %v, want %v", got, want)
		return
	}
	for key, want := range b.want {
		var members []int
		for n := range 4 {
			if port := portOf(b.site, b.site.MAC(n)); port != nil && port["portgroup_uuid"] == groups[key]["uuid"] {
				members = append(members, n)
			}
		}
		if found := lacks("", groups[key], want.has); len(found) > 0 || !slices.Equal(members, want.members) {
			resp.Error = fmt.Errorf("port group %s in Ironic: %v; its ports are %v, want %v", key, found, members, want.members)
		}
	}
}

func bondsAre(s *site.Site, want map[string]bond) []statecheck.StateCheck {
	return []statecheck.StateCheck{bonds{s, want}}
}

func TestAccHost_portGroupsAreMadeChangedAndRemoved(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	config := func(groups string, ports map[int]string) string { return hostConfig(s, cabled(s, groups, ports)) }
	const in0, in1 = `port_group = "bond0"`, `port_group = "bond1"`
	acctest.Test(t,
		resource.TestStep{
			Config: config(`bond0 = { mode = "802.3ad", properties = { miimon = "100" } }, bond1 = {}`,
				map[int]string{1: in0, 2: in0, 3: ""}),
			ConfigStateChecks: append(bondsAre(s, map[string]bond{
				"bond0": {map[string]any{
					"mode": "802.3ad", "properties": map[string]any{"miimon": "100"},
					"standalone_ports_supported": true, "address": nil,
				}, []int{1, 2}},
				"bond1": {map[string]any{"mode": "active-backup"}, nil},
			}), hostIs("port_groups", knownvalue.MapPartial(map[string]knownvalue.Check{
				"bond1": knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"mode":             knownvalue.StringExact("active-backup"),
					"standalone_ports": knownvalue.Bool(true),
				}),
			}))),
		},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportPlanChecks: acctest.EmptyImport(),
		},
		resource.TestStep{
			Config: config(`bond0 = { mode = "active-backup", mac = "`+s.MAC(9)+
				`", standalone_ports = false, properties = { primary = "eno1" } }, bond1 = { mode = "balance-xor", mac = "`+s.MAC(8)+`" }`,
				map[int]string{1: in0 + ", pxe_enabled = false", 2: in1, 3: in1}),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: bondsAre(s, map[string]bond{
				"bond0": {map[string]any{
					"mode": "active-backup", "properties": map[string]any{"miimon": nil, "primary": "eno1"},
					"standalone_ports_supported": false, "address": s.MAC(9),
				}, []int{1}},
				"bond1": {map[string]any{"mode": "balance-xor"}, []int{2, 3}},
			}),
		},
		resource.TestStep{ // MAC addresses of groups are unique in Ironic
			Config: config(`bond0 = { mac = "`+s.MAC(8)+`" }, bond1 = { mac = "`+s.MAC(9)+`" }`, map[int]string{1: in0, 2: in1, 3: in1}),
			ConfigStateChecks: bondsAre(s, map[string]bond{
				"bond0": {map[string]any{"address": s.MAC(8)}, []int{1}}, "bond1": {map[string]any{"address": s.MAC(9)}, []int{2, 3}},
			}),
		},
		resource.TestStep{ // what is omitted stays; a port without port_group leaves its group
			PreConfig: func() { // another client makes a group
				s.Must(http.MethodPost, "portgroups", map[string]any{"node_uuid": s.Node(name)["uuid"], "name": s.Name("others")})
			},
			Config: config(`bond0 = {}, bond1 = {}`, map[int]string{1: in0, 2: "", 3: in1}),
			ConfigStateChecks: bondsAre(s, map[string]bond{
				"bond0": {map[string]any{"mode": "active-backup", "properties": map[string]any{"primary": "eno1"}}, []int{1}},
				"bond1": {map[string]any{"mode": "balance-xor"}, []int{3}}, s.Name("others"): {},
			}),
		},
		resource.TestStep{ // a group that is removed loses its ports first
			Config:            config(`bond1 = {}`, map[int]string{1: "", 2: in1, 3: in1}),
			ConfigStateChecks: bondsAre(s, map[string]bond{"bond1": {nil, []int{2, 3}}, s.Name("others"): {}}),
		},
		resource.TestStep{
			Config: hostConfig(s, "ports = { "+acctest.Quoted(s.MAC(3))+" = {} }"),
			ConfigStateChecks: append(bondsAre(s, map[string]bond{s.Name("others"): {}}),
				onPort{s, s.MAC(3), map[string]any{"portgroup_uuid": nil}}),
		},
	)
}

// Ironic changes the connectivity of ports in maintenance only, once the node is available. One apply sets maintenance, changes the
// ports, and restores maintenance.
func TestAccHost_isRecabledInMaintenance(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	config := func(groups string, ports map[int]string) string { return deployedHost(s, cabled(s, groups, ports)) }
	has := func(want map[string]bond, maintenance bool, reason any) []statecheck.StateCheck {
		return append(bondsAre(s, want), nodeHas(s, map[string]any{
			"provision_state": "active", "maintenance": maintenance,
			"maintenance_reason": reason,
		}))
	}
	const in0 = `port_group = "bond0"`
	byHand := func(reason string) func() {
		return func() { s.Must(http.MethodPut, "nodes/"+name+"/maintenance", map[string]any{"reason": reason}) }
	}
	acctest.Test(t,
		resource.TestStep{Config: config(``, map[int]string{1: "", 2: ""}), ConfigStateChecks: has(map[string]bond{}, false, nil)},
		resource.TestStep{
			Config:            config(`bond0 = {}`, map[int]string{1: in0, 2: in0 + ", pxe_enabled = false"}),
			ConfigStateChecks: has(map[string]bond{"bond0": {nil, []int{1, 2}}}, false, nil),
		},
		resource.TestStep{
			PreConfig:         byHand("by hand"),
			Config:            config(`bond0 = {}`, map[int]string{1: "", 2: in0}),
			ConfigStateChecks: has(map[string]bond{"bond0": {nil, []int{2}}}, true, "by hand"),
		},
		resource.TestStep{
			PreConfig:         byHand(machine.ReasonChanging), // a killed run
			Config:            config(``, map[int]string{1: "", 2: ""}),
			ConfigStateChecks: has(map[string]bond{}, false, nil),
		},
	)
}

func TestAccHost_portGroupDrift(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	config := hostConfig(s, cabled(s, `bond0 = { mode = "802.3ad" }`, map[int]string{1: `port_group = "bond0"`, 2: `port_group = "bond0"`}))
	group := func() string { return "portgroups/" + site.Text(groupsOn(s, name)["bond0"]["uuid"]) }
	edit := func(path, attribute string, value any) {
		s.Must(http.MethodPatch, path, []any{map[string]any{"op": "add", "path": attribute, "value": value}})
	}
	leave := func(n int) { edit("ports/"+site.Text(portOf(s, s.MAC(n))["uuid"]), "/portgroup_uuid", nil) }
	repaired := bondsAre(s, map[string]bond{"bond0": {map[string]any{"mode": "802.3ad"}, []int{1, 2}}})
	steps := []resource.TestStep{{Config: config, ConfigStateChecks: repaired}}
	for _, drift := range []func(){
		func() { edit(group(), "/mode", "balance-rr") },
		func() { leave(1) },
		func() { leave(1); leave(2); s.Must(http.MethodDelete, group(), nil) },
	} {
		steps = append(steps, resource.TestStep{
			PreConfig: drift, Config: config,
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: repaired,
		})
	}
	acctest.Test(t, steps...)
}

// An import shows the groups of the ports, also those that other clients have made, under their names.
func TestAccHost_importShowsPortGroups(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Name("h")
	id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "fake-hardware"})["uuid"])
	group := s.Must(http.MethodPost, "portgroups", map[string]any{"node_uuid": id, "name": s.Name("trunk"), "mode": "802.3ad"})
	s.Must(http.MethodPost, "ports", map[string]any{
		"node_uuid": id, "address": s.MAC(1), "portgroup_uuid": group["uuid"],
		"extra": map[string]any{"slot": 1},
	})
	importing := s.Provider() + "import {\n  to = metal_host.h\n  id = " + acctest.Quoted(name) + "\n}\n"
	config := func(mode string) string {
		return acctest.HostBlock(name, `driver = "fake-hardware"`, cabled(s, fmt.Sprintf(`%q = { mode = %q }`, s.Name("trunk"), mode),
			map[int]string{
				1: fmt.Sprintf("port_group = %q, extra_json = jsonencode({ slot = 1 })", s.Name("trunk")),
			}))
	}
	w := acctest.NewWorkspace(t, importing+acctest.HostBlock(name, `driver = "fake-hardware"`))
	defer acctest.Destroy(t, s, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	w.Configure(importing + config("802.3ad"))
	acctest.NoChanges(t, w)
	w.Configure(importing + config("balance-rr"))
	w.Must("apply", "-auto-approve")
	if got := groupsOn(s, name)[s.Name("trunk")]; got["mode"] != "balance-rr" || got["uuid"] != group["uuid"] {
		t.Errorf("the group in Ironic: %v", got)
	}
	acctest.NoDrift(t, w)
}

func TestAccHost_portsHaveNamesAndNotes(t *testing.T) {
	s := site.Start(t, nil)
	config := func(body string) string { return hostConfig(s, cabled(s, "", map[int]string{1: body})) }
	smart := `is_smartnic = true, local_link_connection = { hostname = "dpu1", port_id = "rep0-0" }`
	port := func(want map[string]any) []statecheck.StateCheck {
		return []statecheck.StateCheck{onPort{s, s.MAC(1), want}}
	}
	in := func(extra map[string]any) map[string]any { return map[string]any{"extra": extra, "is_smartnic": true} }
	acctest.Test(t,
		resource.TestStep{
			Config: config(smart +
				`, extra_json = jsonencode({ slot = 1, cage = { row = "a" }, "asset.tag" = [true, 1.5] })`),
			ConfigStateChecks: port(in(map[string]any{"slot": 1.0, "cage": map[string]any{"row": "a"}, "asset.tag": []any{true, 1.5}})),
		},
		resource.TestStep{
			PreConfig: func() { // another client
				s.Must(http.MethodPatch, "ports/"+site.Text(portOf(s, s.MAC(1))["uuid"]),
					[]any{map[string]any{"op": "add", "path": "/extra/others", "value": "mine"}})
			},
			Config:            config(`extra_json = jsonencode({ slot = 2 })`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: port(in(map[string]any{"slot": 2.0, "cage": nil, "asset.tag": nil, "others": "mine"})),
		},
		resource.TestStep{Config: config(``), ConfigStateChecks: port(in(map[string]any{"slot": nil, "others": "mine"}))},
		resource.TestStep{
			Config:            config(`extra_json = jsonencode({}), is_smartnic = false`),
			ConfigStateChecks: port(map[string]any{"is_smartnic": false}),
		},
	)
}

func TestAccHost_portsHaveAttributesOfNewerAPI(t *testing.T) {
	s := site.Start(t, nil)
	if s.Newest() < 101 {
		t.Skip("this Ironic knows no categories of ports")
	}
	config := func(body string) string { return hostConfig(s, cabled(s, "", map[int]string{1: body})) }
	first, second := s.Name("eno1"), s.Name("eno2")
	has := func(name, description, vendor, category string) statecheck.StateCheck {
		return hostIs("ports",
			knownvalue.MapExact(map[string]knownvalue.Check{s.MAC(1): knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"name": knownvalue.StringExact(name), "description": knownvalue.StringExact(description),
				"vendor": knownvalue.StringExact(vendor), "category": knownvalue.StringExact(category),
			})}))
	}
	acctest.Test(t,
		resource.TestStep{
			Config:            config(fmt.Sprintf(`name = %q, description = "left", vendor = "acme", category = "fast"`, first)),
			ConfigStateChecks: []statecheck.StateCheck{has(first, "left", "acme", "fast")},
		},
		resource.TestStep{
			Config:            config(fmt.Sprintf(`name = %q, description = "right", vendor = "bolt", category = "slow"`, second)),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{has(second, "right", "bolt", "slow")},
		},
		// omitted attributes stay
		resource.TestStep{Config: config(``), ConfigStateChecks: []statecheck.StateCheck{has(second, "right", "bolt", "slow")}},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportPlanChecks: acctest.EmptyImport(),
		},
	)
}

// The plan refuses what Ironic would refuse, at the attribute.
func TestFakeHost_planRefusesWrongCabling(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for _, tt := range []struct {
		groups      string
		first, more string // ports
		want        []string
	}{
		{`bond0 = { mode = "lacp" }`, ``, ``, []string{`port_groups["bond0"].mode`, `"active-backup"`}},
		{`"bond 0" = {}`, ``, ``, []string{"port_groups", "must have 1 to 200 letters"}},
		{`bond0 = { mac = "52-54-00-AA-BB-01" }`, ``, ``, []string{`Write "52-54-00-AA-BB-01" as "52:54:00:aa:bb:01"`}},
		{
			`bond0 = { mac = "52:54:00:aa:bb:01" }, bond1 = { mac = "52:54:00:aa:bb:01" }`, ``, ``,
			[]string{"Two port groups with one MAC address", "Port group bond0 has the MAC address"},
		},
		{`bond0 = {}`, `port_group = "bond1"`, ``, []string{"Unknown port group", `port_groups has no group "bond1". It has bond0.`}},
		{``, `port_group = "bond1"`, ``, []string{`port_groups has no group "bond1". It is empty.`}},
		{`bond0 = { standalone_ports = false }`, `port_group = "bond0", pxe_enabled = true`, ``, []string{"Port cannot boot alone"}},
		{
			`bond0 = {}`, `port_group = "bond0", physical_network = "a"`, `port_group = "bond0", physical_network = "b"`,
			[]string{"Port group on two networks", `This port has "b", and another one has "a".`},
		},
		{
			`bond0 = {}`, `port_group = "bond0", physical_network = "a"`, `port_group = "bond0"`,
			[]string{"Port group on two networks", `Another port has "a", and this one has none. Set it here, too.`},
		},
		{``, `name = "eno1"`, `name = "eno1"`, []string{"Two ports with one name"}},
	} {
		w := acctest.NewWorkspace(t, hostConfig(s, cabled(s, tt.groups, map[int]string{1: tt.first, 2: tt.more})))
		acctest.Fails(t, w, []string{"plan"}, tt.want...)
	}
}

// A port group is read by a list that all hosts share, and only if a configuration has port groups.
func TestFakeHost_refreshListsPortGroupsOnce(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	hosts := func(groups string) string {
		return s.Provider() + `
resource "metal_host" "h" {
  count  = 12
  name   = "` + s.Name("h") + `-${count.index}"
  driver = "fake-hardware"
  ` + groups + `
}
`
	}
	lists := func() (count int) {
		for _, r := range s.Fake.Requests() {
			if strings.HasPrefix(r.Path, "/v1/portgroups") && r.Method == http.MethodGet {
				count++
			}
		}
		return count
	}
	w := acctest.NewWorkspace(t, hosts(""))
	w.Must(acctest.Apply()...)
	w.Must("plan")
	if got := lists(); got != 0 {
		t.Errorf("port groups were read %d times, and no host has any", got)
	}
	w.Configure(hosts(`port_groups = { bond0 = {} }`))
	w.Must(acctest.Apply()...)
	s.Fake.ResetRequests()
	acctest.NoChanges(t, w)
	if got := lists(); got < 1 || got > 3 { // one list, after two single reads
		t.Errorf("port groups were read %d times by a refresh of 12 hosts", got)
	}
	w.Must("destroy", "-auto-approve")
}

// The MAC address of a port group is unique in Ironic: the error names the node that has it, and nothing is made.
func TestFakeHost_takenMACOfPortGroup(t *testing.T) {
	s := site.StartFake(t, &fakeironic.Server{})
	id := s.Must(http.MethodPost, "nodes", map[string]any{"name": "other", "driver": "fake-hardware"})["uuid"]
	s.Must(http.MethodPost, "portgroups", map[string]any{"node_uuid": id, "address": s.MAC(1)})
	acctest.Test(t, resource.TestStep{
		Config:      hostConfig(s, fmt.Sprintf("port_groups = { bond0 = { mac = %q } }", s.MAC(1))),
		ExpectError: regexp.MustCompile(acctest.Wrapped("A port group with MAC address " + s.MAC(1) + " already exists, on node other")),
	})
}
