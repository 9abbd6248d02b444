package provider_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// plan plans with the server and with the framework alone, compares what they say if the server has not asked the
// framework, and reports whether it has not.
func (s *session) plan(kind string, config map[string]any, prior *instance) (atOnce bool) {
	s.Helper()
	req := s.planRequest(kind, config, prior)
	got, err := s.server.PlanResourceChange(s.Context(), req)
	if err != nil {
		s.Fatal(err)
	}
	if got.PlannedState != req.PriorState {
		return false
	}
	want, err := s.server.ProviderServer.PlanResourceChange(s.Context(), req)
	if err != nil {
		s.Fatal(err)
	}
	differences, err := s.of(kind, want.PlannedState).Diff(s.of(kind, got.PlannedState))
	if err != nil || len(differences) > 0 {
		s.Errorf("%s %v: the framework plans a change that the server hides: %v %v", kind, config, differences, err)
	}
	if len(want.Diagnostics) > 0 || len(want.RequiresReplace) > 0 || want.Deferred != nil {
		s.Errorf("%s %v: the server hides %s, replacement for %v", kind, config, describe(want.Diagnostics), want.RequiresReplace)
	}
	if !bytes.Equal(want.PlannedPrivate, got.PlannedPrivate) || !bytes.Equal(want.PlannedIdentity.IdentityData.MsgPack,
		got.PlannedIdentity.IdentityData.MsgPack) {
		s.Errorf("%s %v: private state %s and identity %v, the framework says %s and %v", kind, config, got.PlannedPrivate,
			got.PlannedIdentity, want.PlannedPrivate, want.PlannedIdentity)
	}
	return true
}

// oneHost is the configuration of a host with something of everything.
func oneHost() map[string]any {
	return map[string]any{
		"name": "r1", "driver": "fake-hardware", "target_state": "enroll", "resource_class": "baremetal", "description": "web",
		"driver_info": map[string]any{
			"deploy_kernel":  "http://images.example.com/kernel",
			"deploy_ramdisk": "http://images.example.com/ramdisk",
		},
		"properties": map[string]any{"cpus": "64", "memory_mb": "262144"}, "traits": []any{"CUSTOM_A", "CUSTOM_B"},
		"port_groups": map[string]any{"bond0": map[string]any{"mode": "802.3ad"}},
		"ports": map[string]any{
			"52:54:00:00:00:01": map[string]any{"port_group": "bond0"}, "52:54:00:00:00:02": map[string]any{
				"pxe_enabled": false,
				"extra_json":  `{"slot":1}`,
			},
		},
		"network_data":   `{"services": [], "networks": [], "links": []}`,
		"driver_info_wo": map[string]any{"redfish_password": "secret"}, "driver_info_wo_version": "1",
		"extra": map[string]any{"team": "web"},
	}
}

// appliedHost is a host that was applied and refreshed.
func (s *session) appliedHost(config map[string]any) *instance {
	s.Helper()
	made, said := s.apply("metal_host", config, nil)
	if failed(said) {
		s.Fatal(describe(said))
	}
	return s.read(made)
}

func TestUnchanged_planIsPriorState(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := oneHost()
	made, said := s.apply("metal_host", config, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	if !s.plan("metal_host", config, made) {
		t.Error("a host is not planned at once after its creation")
	}
	host := s.read(made)
	if !s.plan("metal_host", config, host) {
		t.Error("an unchanged host is not planned at once")
	}
	config["driver_info_wo"] = map[string]any{"redfish_password": "another"}
	if !s.plan("metal_host", config, host) {
		t.Error("a write-only value counts, though only its version does")
	}
}

func TestUnchanged_possibleChangeIsPlanned(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *session, config map[string]any, host *instance) *instance{
		"an attribute": func(_ *session, config map[string]any, host *instance) *instance {
			config["description"] = "other"
			return host
		},
		"an attribute that was removed": func(_ *session, config map[string]any, host *instance) *instance {
			delete(config, "description")
			return host
		},
		"a port's attribute that was removed": func(_ *session, config map[string]any, host *instance) *instance {
			config["ports"] = map[string]any{"52:54:00:00:00:01": map[string]any{}, "52:54:00:00:00:02": map[string]any{}}
			return host
		},
		"a secret that was added": func(_ *session, config map[string]any, host *instance) *instance {
			config["driver_info_wo"] = map[string]any{"redfish_password": "secret", "redfish_username": "root"}
			return host
		},
		"drift": func(s *session, _ map[string]any, host *instance) *instance {
			s.call("PATCH", "/v1/nodes/"+s.text(host, "id"), patch("replace", "/description", "other"))
			s.configure(nil) // another run
			return s.read(host)
		},
		"the version of the provider's API": func(s *session, _ map[string]any, host *instance) *instance {
			s.configure(block{"microversion": "1.80"})
			return host
		},
		"the provider's on_change": func(s *session, _ map[string]any, host *instance) *instance {
			s.configure(block{"on_change": "replace"})
			return host
		},
		"a state without the note": func(_ *session, _ map[string]any, host *instance) *instance {
			return &instance{kind: host.kind, state: host.state, identity: host.identity}
		},
		"a node that has left its target state": func(s *session, config map[string]any, _ *instance) *instance {
			config["target_state"], config["name"], config["ports"] = "available", "r2", nil
			host := s.appliedHost(config)
			s.call("PUT", "/v1/nodes/"+s.text(host, "id")+"/states/provision", map[string]any{"target": "manage"})
			s.configure(nil) // another run
			return s.read(host)
		},
		"a reason for maintenance that another user gave": func(s *session, config map[string]any, _ *instance) *instance {
			config["maintenance"], config["name"], config["ports"] = true, "r2", nil
			host := s.appliedHost(config)
			s.call("PUT", "/v1/nodes/"+s.text(host, "id")+"/maintenance", map[string]any{"reason": "drift"})
			s.configure(nil) // another run
			return s.read(host)
		},
		"an interface that does not follow from the BMC": func(s *session, config map[string]any, _ *instance) *instance {
			config["driver"], config["driver_info"], config["driver_info_wo"], config["driver_info_wo_version"] = nil, nil, nil, nil
			config["bmc"], config["name"], config["ports"] = map[string]any{
				"address": "redfish-virtualmedia://10.0.0.1/redfish/v1/Systems/1",
			}, "r2", nil
			host := s.appliedHost(config)
			if !s.plan("metal_host", config, host) {
				s.Error("before, it is not planned at once")
			}
			status := s.call("PATCH", "/v1/nodes/"+s.text(host, "id"), patch("replace", "/boot_interface", "ipxe"))
			if status != http.StatusOK {
				s.Fatalf("another boot interface is answered %d", status)
			}
			s.configure(nil) // another run
			return s.read(host)
		},
		"maintenance that a killed run has left": func(s *session, _ map[string]any, host *instance) *instance {
			s.call("PUT", "/v1/nodes/"+s.text(host, "id")+"/maintenance", map[string]any{"reason": machine.ReasonChanging})
			s.configure(nil) // another run
			return s.read(host)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, nil)
			config := oneHost()
			host := change(s, config, s.appliedHost(config))
			if s.plan("metal_host", config, host) {
				t.Error("it is planned at once")
			}
		})
	}
}

// Create and Update note what a refresh would, so that plan -refresh-only finds no difference.
func TestUnchanged_applyNotesWhatRefreshNotes(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := oneHost()
	host, _ := s.apply("metal_host", config, nil)
	if read := s.read(host); !bytes.Equal(read.private, host.private) {
		t.Errorf("after the creation, private state is %s, and after a refresh %s", host.private, read.private)
	}
	config["description"] = "other"
	updated, said := s.apply("metal_host", config, host)
	if failed(said) || updated == host {
		t.Fatalf("the update is not applied: %s", describe(said))
	}
	if !s.plan("metal_host", config, updated) {
		t.Error("an updated host is not planned at once")
	}
	if read := s.read(updated); !bytes.Equal(read.private, updated.private) {
		t.Errorf("after the update, private state is %s, and after a refresh %s", updated.private, read.private)
	}
}

// An update that fails ends what was noted before.
func TestUnchanged_failedUpdateClearsNote(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := oneHost()
	host := s.appliedHost(config)
	s.call("DELETE", "/v1/nodes/"+s.text(host, "id"), nil)
	config["description"] = "other"
	updated, said := s.apply("metal_host", config, host)
	if !failed(said) {
		t.Fatalf("the update works: %s", describe(said))
	}
	if s.plan("metal_host", oneHost(), updated) {
		t.Error("a host whose update failed is planned at once")
	}
}

// settings are values of attributes, by resource. A random configuration has some of them.
var settings = map[string]map[string][]any{
	"metal_host": {
		"name": {"n1", "n2"}, "resource_class": {"a", "b"}, "description": {"d1", "d2"}, "owner": {"o"}, "lessee": {"l"}, "shard": {"s"},
		"automated_clean": {true, false}, "maintenance": {true, false}, "retired": {true, false}, "inspect": {true, false},
		"inspect_triggers": {map[string]any{"a": "1"}, map[string]any{"a": "2"}},
		"target_state":     {"enroll", "manageable", "available"}, "power_state": {"on", "off"}, "on_destroy": {"forget"},
		"power_off_mode": {"graceful", "hard"}, "disable_power_off": {true, false}, "boot_mode": {"uefi", "bios"}, "secure_boot": {false},
		"driver_info":  {map[string]any{"deploy_kernel": "http://k"}, map[string]any{"deploy_ramdisk": "http://r"}},
		"properties":   {map[string]any{"cpus": "4"}, map[string]any{"memory_mb": "8", "cpus": "8"}},
		"root_device":  {map[string]any{"serial": "1"}},
		"capabilities": {map[string]any{"boot_mode": "uefi"}}, "traits": {[]any{"CUSTOM_A"}, []any{"CUSTOM_A", "CUSTOM_B"}},
		"extra": {map[string]any{"team": "a"}}, "hardware_interfaces": {
			map[string]any{"boot": "fake"},
			map[string]any{"deploy": "fake", "power": "fake"},
		},
		"bmc": {
			map[string]any{"address": "redfish-virtualmedia://10.0.0.1/redfish/v1/Systems/1", "username": "root"},
			map[string]any{"address": "redfish://10.0.0.1/redfish/v1/Systems/1", "password_wo": "secret", "password_wo_version": "1"},
			map[string]any{"address": "idrac-virtualmedia://10.0.0.1/redfish/v1/Systems/1"},
			map[string]any{"address": "ipmi://10.0.0.1"},
		},
		"ports": {
			map[string]any{"52:54:00:00:00:01": map[string]any{}},
			map[string]any{"52:54:00:00:00:01": map[string]any{"pxe_enabled": false, "extra": `{"a":1}`}},
			map[string]any{"52:54:00:00:00:01": map[string]any{"name": "eno1"}, "52:54:00:00:00:02": map[string]any{
				"is_smartnic": false,
				"description": "d",
			}},
		},
		"port_groups": {
			map[string]any{"bond0": map[string]any{"physical_network": "a", "category": "c", "extra_json": `{"a":1}`}},
			map[string]any{"bond0": map[string]any{}},
			map[string]any{
				"bond0": map[string]any{"mode": "802.3ad"},
				"bond1": map[string]any{"properties": map[string]any{}},
			},
		},
		"network_data": {`{"links": [], "networks": [], "services": []}`},
	},
	"metal_allocation": {
		"name": {"a1", "a2"}, "traits": {[]any{"CUSTOM_A"}}, "extra": {map[string]any{"team": "a"}, map[string]any{"team": "b"}},
		"candidate_nodes": {[]any{"n1"}, []any{"n2", "n1"}}, "timeouts": {map[string]any{"create": "1s"}},
	},
	"metal_deployment": {
		"image": {
			map[string]any{"url": "file:///a", "checksum": "0123456789abcdef0123456789abcdef"},
			map[string]any{"url": "file:///b", "checksum": "0123456789abcdef0123456789abcdef"}, // the same image
			map[string]any{"url": "file:///b", "checksum": "fedcba9876543210fedcba9876543210"},
		},
		"power_state": {"on", "off"}, "power_off_mode": {"graceful"}, "on_change": {"ignore", "rebuild", "replace"},
		"protected":        {true, false},
		"rebuild_triggers": {map[string]any{"a": "1"}, map[string]any{"a": "2"}}, "restart_triggers": {
			map[string]any{"a": "1"},
			map[string]any{"a": "2"},
		}, "max_attempts": {2}, "on_destroy": {"forget"},
		"rescue": {
			map[string]any{"password_wo": "p", "password_wo_version": "1"},
			map[string]any{"password_wo": "q", "password_wo_version": "2"},
		},
		"capabilities": {map[string]any{"boot_mode": "uefi"}}, "config_drive": {map[string]any{"hostname": "h", "meta_data": `{"a": 1}`}},
	},
}

// vary changes a configuration at random, in a few attributes.
func vary(r *rand.Rand, kind string, config map[string]any, attributes int) map[string]any {
	varied := maps.Clone(config)
	names := slices.Sorted(maps.Keys(settings[kind]))
	for range attributes {
		name := names[r.IntN(len(names))]
		values := settings[kind][name]
		if choice := r.IntN(len(values) + 1); choice < len(values) {
			varied[name] = values[choice]
		} else {
			delete(varied, name)
		}
	}
	if kind == "metal_host" {
		varied["driver"] = "fake-hardware"
	}
	if varied["bmc"] != nil {
		delete(varied, "driver")
	}
	return varied
}

// drift changes a node at random, as another user of Ironic.
func (s *session) drift(r *rand.Rand, id string) {
	node := "/v1/nodes/" + id
	for range r.IntN(3) {
		switch r.IntN(9) {
		case 0:
			s.call("PATCH", node, patch("add", []string{"/description", "/resource_class", "/owner", "/retired_reason", "/name"}[r.IntN(5)],
				"drift"))
		case 1:
			s.call("PATCH", node, patch("add", "/"+[]string{"retired", "automated_clean"}[r.IntN(2)], r.IntN(2) == 0))
		case 2:
			s.call("PATCH", node, patch("add", "/properties/"+[]string{"cpus", "memory_mb", "capabilities", "vendor"}[r.IntN(4)],
				"boot_mode:bios"))
		case 3:
			s.call("PUT", node+"/maintenance", map[string]any{"reason": []string{"", "drift", machine.ReasonChanging}[r.IntN(3)]})
		case 4:
			s.call("DELETE", node+"/maintenance", nil)
		case 5:
			s.call("PUT", node+"/states/power", map[string]any{"target": []string{"power on", "power off"}[r.IntN(2)]})
		case 6:
			s.call("PUT", node+"/states/provision",
				map[string]any{"target": []string{"manage", "provide", "inspect", "active", "deleted"}[r.IntN(5)]})
		case 7:
			s.call("PATCH", node, patch("add", "/"+[]string{"boot", "deploy", "power"}[r.IntN(3)]+"_interface",
				[]string{"fake", "direct"}[r.IntN(2)]))
		case 8:
			s.call("PATCH", node, patch("add", "/protected", r.IntN(2) == 0))
		}
	}
}

// seeds is how many random sites are tried for each resource.
const seeds = 6

// For random configurations and sites, what the server plans at once is what the framework would plan, and says nothing.
func TestUnchanged_equalsPlanOfFramework(t *testing.T) {
	t.Parallel()
	for kind := range settings {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			atOnce, asked := 0, 0
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
				s := startSession(t, nil)
				config, node := s.prepare(r, kind)
				current, _ := s.apply(kind, config, nil)
				for round := 0; round < 8 && current != nil && !s.of(kind, current.state).IsNull(); round++ {
					s.drift(r, node(current))
					s.configure(nil) // another run
					if current = s.read(current); current == nil {
						break
					}
					next := vary(r, kind, config, r.IntN(3))
					for _, c := range []map[string]any{config, next} {
						if s.plan(kind, c, current) {
							atOnce++
						} else {
							asked++
						}
					}
					if r.IntN(2) == 0 {
						config = next
						if current, _ = s.apply(kind, config, current); current != nil {
							s.plan(kind, config, current) // without a refresh
						}
					}
				}
			}
			t.Logf("%d plans at once, %d by the framework", atOnce, asked)
			if atOnce < seeds || asked < seeds {
				t.Errorf("%d plans at once, %d by the framework: too few of one kind to tell", atOnce, asked)
			}
		})
	}
}

// prepare makes a random configuration, what it needs, and a function that says which node a resource is about.
func (s *session) prepare(r *rand.Rand, kind string) (map[string]any, func(*instance) string) {
	s.Helper()
	if kind == "metal_host" {
		config := vary(r, kind, map[string]any{"name": "n0", "driver": "fake-hardware", "target_state": "enroll"}, 8)
		return config, func(i *instance) string { return s.text(i, "id") }
	}
	host := map[string]any{
		"name": "n1", "driver": "fake-hardware", "target_state": "available", "resource_class": "a",
		"traits": []any{"CUSTOM_A"},
	}
	id := s.text(s.appliedHost(host), "id")
	config := map[string]any{"resource_class": "a"}
	if kind == "metal_deployment" {
		config = map[string]any{"node_id": id, "image": settings[kind]["image"][0]}
	}
	return vary(r, kind, config, 2), func(*instance) string { return id }
}
