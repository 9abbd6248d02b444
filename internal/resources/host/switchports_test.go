package host_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Ports inherit the physical network of their group, and follow it, also on a machine that runs.
func TestAccHost_portsInheritTheNetworkOfTheirGroup(t *testing.T) {
	s := site.Start(t, nil)
	s.SkipBefore(t, 103)
	const in = `port_group = "bond0"`
	config := func(group string, ports map[int]string) string { return deployedHost(s, cabled(s, group, ports)) }
	on := func(network, category string, members ...int) []statecheck.StateCheck {
		checks := append(bondsAre(s, map[string]bond{"bond0": {nil, members}}),
			nodeHas(s, map[string]any{"provision_state": "active", "maintenance": false}),
			hostIs("port_groups",
				knownvalue.MapPartial(map[string]knownvalue.Check{"bond0": knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"physical_network": knownvalue.StringExact(network), "category": knownvalue.StringExact(category),
				})})))
		for _, n := range members {
			checks = append(checks, onPort{s, s.MAC(n), map[string]any{"physical_network": network}})
		}
		return checks
	}
	acctest.Test(t,
		resource.TestStep{
			Config:            config(`bond0 = { physical_network = "rack12", category = "tenant" }`, map[int]string{1: in, 2: in}),
			ConfigStateChecks: on("rack12", "tenant", 1, 2),
		},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportPlanChecks: acctest.EmptyImport(),
		},
		resource.TestStep{
			Config:           config(`bond0 = { physical_network = "rack13", category = "storage" }`, map[int]string{1: in, 2: in}),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: on("rack13", "storage", 1, 2),
		},
		resource.TestStep{ // omitted values stay, and a new port inherits
			Config: config(`bond0 = {}`, map[int]string{1: in, 2: in, 3: in}), ConfigStateChecks: on("rack13", "storage", 1, 2, 3),
		},
		resource.TestStep{PlanOnly: true, Config: config(`bond0 = {}`, map[int]string{1: in, 2: in, 3: in})},
		resource.TestStep{ // the ports can say it, too
			Config: config(`bond0 = {}`, map[int]string{
				1: in + `, physical_network = "rack14"`,
				2: in + `, physical_network = "rack14"`, 3: in + `, physical_network = "rack14"`,
			}),
			ConfigStateChecks: on("rack14", "storage", 1, 2, 3),
		},
	)
}

// A plan mends ports whose group has another network, also if the configuration omits both, and leaves those of a group alone that it does
// not manage.
func TestFakeHost_straysFollowTheirGroup(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	managed := hostConfig(s, cabled(s, `bond0 = {}`, map[int]string{1: `port_group = "bond0"`}))
	w := acctest.NewWorkspace(t, managed)
	w.Must(acctest.Apply()...)
	stray := func(network string) {
		group := groupsOn(s, s.Name("h"))["bond0"]
		s.Must(http.MethodPatch, "portgroups/"+site.Text(group["uuid"]), []any{ // Ironic looks at the first operation only
			map[string]any{"op": "add", "path": "/extra/x", "value": network}, map[string]any{
				"op": "add", "path": "/physical_network",
				"value": network,
			},
		})
	}
	stray("a")
	acctest.Mention(t, w.Must("plan"), `physical_network = "a"`)
	w.Must(acctest.Apply()...)
	if got := portOf(s, s.MAC(1))["physical_network"]; got != "a" {
		t.Errorf("the port has the network %v", got)
	}
	acctest.NoChanges(t, w)
	stray("b")
	other := acctest.NewWorkspace(t, "import {\n  to = metal_host.h\n  id = "+acctest.Quoted(s.Name("h"))+"\n}\n"+
		hostConfig(s, fmt.Sprintf("ports = { %q = {} }", s.MAC(1))))
	acctest.Mention(t, other.Must("plan"), "1 to import, 0 to add, 0 to change")
	w.Must("destroy", "-auto-approve")
}

// With a microversion that does not know the networks of groups, a group of a newer Ironic keeps that of its first port, and takes no port
// of another one.
func TestFakeHost_oldMicroversionKeepsTheNetworkOfAGroup(t *testing.T) {
	t.Parallel()
	for newest, kept := range map[string]bool{"1.82": false, "1.115": true} {
		s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: newest})
		config := func(network string) string {
			ports := cabled(s, `bond0 = {}`, map[int]string{
				1: `port_group = "bond0", physical_network = "` + network + `"`,
				2: `port_group = "bond0", physical_network = "` + network + `"`,
			})
			return s.Provider(`microversion = "1.82"`) + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, ports)
		}
		w := acctest.NewWorkspace(t, config("a"))
		w.Must(acctest.Apply()...)
		acctest.NoChanges(t, w)
		w.Configure(config("b"))
		if kept {
			acctest.Fails(t, w, []string{"plan"}, "Port group keeps its network", "needs API 1.102")
			w.Configure(config("a"))
		} else {
			w.Must(acctest.Apply()...)
			acctest.NoChanges(t, w)
		}
		w.Must("destroy", "-auto-approve")
	}
}

// extra of ports and groups has values of any type. Only its keys in the configuration are managed.
func TestAccHost_extraOfGroupsHasObjects(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	config := func(group, port string) string {
		return hostConfig(s, cabled(s, `bond0 = { `+group+` }`, map[int]string{1: `port_group = "bond0", ` + port}))
	}
	group := func() string { return "portgroups/" + site.Text(groupsOn(s, name)["bond0"]["uuid"]) }
	extras := func(ofGroup, ofPort map[string]any) []statecheck.StateCheck {
		return append(bondsAre(s, map[string]bond{"bond0": {map[string]any{"extra": ofGroup}, []int{1}}}),
			onPort{s, s.MAC(1), map[string]any{"extra": ofPort}})
	}
	lag := map[string]any{"mode": "trunk", "allowed_vlans": []any{110.0, 120.0}}
	acctest.Test(t,
		resource.TestStep{
			Config: config(`extra_json = jsonencode({ lag = { mode = "trunk", allowed_vlans = [110, 120] }, "asset.tag" = 7 })`,
				`extra_json = jsonencode({ rack = { unit = 4 } })`),
			ConfigStateChecks: extras(map[string]any{"lag": lag, "asset.tag": 7.0}, map[string]any{"rack": map[string]any{"unit": 4.0}}),
		},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportPlanChecks: acctest.EmptyImport(),
		},
		resource.TestStep{
			PreConfig: func() {
				s.Must(http.MethodPatch, group(), []any{map[string]any{"op": "add", "path": "/extra/theirs", "value": true}})
			},
			Config: config(`extra_json = jsonencode({ "asset.tag" = { n = 8 } })`,
				`extra_json = jsonencode({ rack = null, unit = 5 })`),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: extras(map[string]any{"lag": nil, "asset.tag": map[string]any{"n": 8.0}, "theirs": true},
				map[string]any{"rack": nil, "unit": 5.0}),
		},
		resource.TestStep{ // drift
			PreConfig: func() {
				s.Must(http.MethodPatch, group(), []any{map[string]any{
					"op": "add", "path": "/extra",
					"value": map[string]any{"asset.tag": 9, "theirs": true},
				}})
			},
			Config:            config(`extra_json = jsonencode({ "asset.tag" = { n = 8 } })`, `extra_json = jsonencode({ unit = 5 })`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: extras(map[string]any{"asset.tag": map[string]any{"n": 8.0}, "theirs": true}, map[string]any{"unit": 5.0}),
		},
		resource.TestStep{Config: config(``, ``), ConfigStateChecks: extras(map[string]any{"asset.tag": nil, "theirs": true},
			map[string]any{"unit": nil})},
	)
}

// switchedHost is a host with the network interface ironic-networking. It has two ports and a bond of both. The machine boots from the
// first port.
func switchedHost(s *site.Site, settings, group, first, second string) string {
	at := func(n int) string {
		return fmt.Sprintf(
			`port_group = "bond0", pxe_enabled = %t, local_link_connection = { switch_id = "52:54:00:aa:00:01", port_id = "Ethernet1/%d" }`,
			n == 1, n)
	}
	return hostConfig(s, settings, `hardware_interfaces = { network = "ironic-networking" }`,
		cabled(s, `bond0 = { `+group+` }`, map[int]string{1: at(1) + first, 2: at(2) + second}))
}

// skipWithoutSwitchPorts skips a test if Ironic has no network interface ironic-networking.
func skipWithoutSwitchPorts(t *testing.T, s *site.Site) {
	t.Helper()
	enabled, _ := s.Must(http.MethodGet, "drivers/fake-hardware", nil)["enabled_network_interfaces"].([]any)
	if !slices.Contains(enabled, any("ironic-networking")) {
		t.Skip("this Ironic configures no switch ports")
	}
}

const (
	access110 = `, extra_json = jsonencode({ switchport = { mode = "access", native_vlan = 110 } })`
	trunk120  = `, extra_json = jsonencode({ switchport = { mode = "trunk", native_vlan = 1, allowed_vlans = [120, 130] } })`
	bondOf120 = `extra_json = jsonencode({ lag = { mode = "trunk", aggregation_mode = "lacp", allowed_vlans = [120, 130] } })`
)

// Ironic checks the stored ports and bonds before each change. The requests come in an order that it accepts.
func TestAccHost_switchPorts(t *testing.T) {
	s := site.Start(t, &fakeironic.Server{SwitchPorts: true})
	skipWithoutSwitchPorts(t, s)
	name := s.Name("h")
	port := func(n int, switchport any) statecheck.StateCheck {
		return onPort{s, s.MAC(n), map[string]any{"extra": map[string]any{"switchport": switchport}}}
	}
	access := map[string]any{"mode": "access", "native_vlan": 110.0}
	trunk := map[string]any{"mode": "trunk", "native_vlan": 1.0, "allowed_vlans": []any{120.0, 130.0}}
	acctest.Test(t,
		resource.TestStep{
			Config:            switchedHost(s, "", bondOf120, access110, trunk120),
			ConfigStateChecks: []statecheck.StateCheck{port(1, access), port(2, trunk)},
		},
		resource.TestStep{
			Config:            switchedHost(s, "", bondOf120, access110, access110),
			ConfigStateChecks: []statecheck.StateCheck{port(1, access), port(2, access)},
		},
		resource.TestStep{Config: switchedHost(s, "", ``, access110, ``), ConfigStateChecks: []statecheck.StateCheck{
			port(1, access),
			port(2, nil),
		}},
		resource.TestStep{ // another client has made a port that Ironic refuses, with every change of the others
			PreConfig: func() {
				id := site.Text(s.Must(http.MethodGet, "nodes/"+name, nil)["uuid"])
				s.Must(http.MethodDelete, "ports/"+site.Text(portOf(s, s.MAC(2))["uuid"]), nil)
				s.Must(http.MethodPost, "ports", map[string]any{
					"node_uuid": id, "address": s.MAC(2), "pxe_enabled": false,
					"extra": map[string]any{"switchport": map[string]any{"mode": "access", "native_vlan": "110"}, "theirs": 1},
				})
			},
			Config: switchedHost(s, "", bondOf120, access110, trunk120),
			ConfigStateChecks: []statecheck.StateCheck{
				port(1, access), port(2, trunk),
				onPort{s, s.MAC(2), map[string]any{"extra": map[string]any{"theirs": 1.0}}},
			},
		},
	)
}

// The plan refuses switch ports that Ironic would refuse later, and says what a site without them does.
func TestFakeHost_planChecksSwitchPorts(t *testing.T) {
	t.Parallel()
	s, old := site.StartFake(t, &fakeironic.Server{SwitchPorts: true}), site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	boots := `, extra_json = jsonencode({ switchport = { mode = "trunk", native_vlan = 1, allowed_vlans = [120] } })`
	for config, want := range map[string][]string{
		switchedHost(s, "", "", boots, ""): {
			"Switch port cannot be configured", "pxe_enabled", "needs mode",
		},
		switchedHost(s, "", "", "", strings.Replace(trunk120, "trunk", "hybrid", 1)): {
			"Switch port cannot be configured", "networking service configures",
		},
		switchedHost(s, "", bondOf120, access110, ""): {
			"Bond cannot be configured", "has none.",
		},
		hostConfig(s, fmt.Sprintf("ports = { %q = null }", s.MAC(1))): {
			"ports", "contains a null value",
		},
		hostConfig(s, "port_groups = { bond0 = null }"): {
			"port_groups", "contains a null value",
		},
		hostConfig(s, cabled(s, "", map[int]string{1: `extra_json = "[1]"`})): {
			"Not a JSON object",
		},
		hostConfig(s, cabled(s, `bond0 = { physical_network = "a" }`, map[int]string{1: `port_group = "bond0", physical_network = "b"`})): {
			"Port group on two networks", "A port has that of its group",
		},
		hostConfig(old, cabled(old, `bond0 = { physical_network = "a" }`, nil)): {
			"1.102", `port_groups["bond0"].physical_network`,
		},
		hostConfig(old, cabled(old, `bond0 = { category = "a" }`, nil)): {
			"1.103", `port_groups["bond0"].category`,
		},
	} {
		acctest.Fails(t, acctest.NewWorkspace(t, config), []string{"plan"}, want...)
	}
	for ironic, want := range map[*site.Site]string{
		s:   "The network interface of host",
		old: "Ironic configures switch ports since version 35",
	} {
		w := acctest.NewWorkspace(t, hostConfig(ironic, cabled(ironic, "", map[int]string{1: strings.TrimPrefix(access110, ", ")})))
		acctest.Mention(t, w.Must("plan"), "Switch ports are not configured", want)
		w.Must(acctest.Apply()...)
		acctest.NoChanges(t, w)
		w.Must("destroy", "-auto-approve")
	}
}
