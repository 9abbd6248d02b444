package host_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// setting is an attribute of a host that changes in place: two configured values, and the resulting values in Ironic.
type setting struct {
	first, second    string // HCL
	has, then, unset map[string]any
}

// settings are the attributes that can change on any node that is not deployed, with the values that other clients have set.
func settings(s *site.Site) []setting {
	in := func(key string, value any) map[string]any { return map[string]any{key: value} }
	link := func(kind string) string {
		return fmt.Sprintf(`{ id = "eth0", type = %q, ethernet_mac_address = "52:54:00:aa:bb:01" }`, kind)
	}
	network := func(kind string) map[string]any {
		return map[string]any{
			"links":    []any{map[string]any{"id": "eth0", "type": kind, "ethernet_mac_address": "52:54:00:aa:bb:01"}},
			"networks": []any{}, "services": []any{},
		}
	}
	return []setting{
		{
			`description = "first"`, `description = "second, with \"quotes\""`,
			in("description", "first"), in("description", `second, with "quotes"`), in("description", nil),
		},
		{
			`resource_class = ` + acctest.Quoted(s.Class()), `resource_class = ` + acctest.Quoted(s.Class()+"-b"),
			in("resource_class", s.Class()), in("resource_class", s.Class()+"-b"), in("resource_class", nil),
		},
		{`owner = "alice"`, `owner = "bob"`, in("owner", "alice"), in("owner", "bob"), in("owner", nil)},
		{`lessee = "carol"`, `lessee = "dave"`, in("lessee", "carol"), in("lessee", "dave"), in("lessee", nil)},
		{`shard = "s1"`, `shard = "s2"`, in("shard", "s1"), in("shard", "s2"), in("shard", nil)},
		{
			`automated_clean = false`, `automated_clean = true`, in("automated_clean", false), in("automated_clean", true),
			in("automated_clean", nil),
		},
		{
			"maintenance = true\n  maintenance_reason = \"fan\"", "maintenance = true\n  maintenance_reason = \"disk\"",
			map[string]any{"maintenance": true, "maintenance_reason": "fan"},
			map[string]any{"maintenance": true, "maintenance_reason": "disk"},
			map[string]any{"maintenance": false, "maintenance_reason": nil},
		},
		{
			"retired = true\n  retired_reason = \"old\"", "retired = true\n  retired_reason = \"sold\"",
			map[string]any{"retired": true, "retired_reason": "old"},
			map[string]any{"retired": true, "retired_reason": "sold"},
			map[string]any{"retired": false, "retired_reason": nil},
		},
		{
			`properties = { cpus = 4, cpu_arch = "x86_64" }`, `properties = { cpus = "8", vendor = "acme" }`,
			in("properties", map[string]any{"cpus": "4", "cpu_arch": "x86_64", "local_gb": 100.0}),
			in("properties", map[string]any{"cpus": "8", "cpu_arch": nil, "vendor": "acme", "local_gb": 100.0}),
			in("properties", map[string]any{"cpus": nil, "vendor": nil, "local_gb": 100.0}),
		},
		{
			`capabilities = { boot_mode = "uefi", tier = "1" }`, `capabilities = { boot_mode = "bios" }`,
			in("properties", map[string]any{"capabilities": "boot_mode:uefi,cat:meow,tier:1"}),
			in("properties", map[string]any{"capabilities": "boot_mode:bios,cat:meow"}),
			in("properties", map[string]any{"capabilities": "cat:meow"}),
		},
		{
			`root_device = { serial = "D1" }`, `root_device = { wwn = "0x1", rotational = "false" }`,
			in("properties", map[string]any{"root_device": map[string]any{"serial": "D1"}}),
			in("properties", map[string]any{"root_device": map[string]any{"serial": nil, "wwn": "0x1", "rotational": "false"}}),
			in("properties", map[string]any{"root_device": nil}),
		},
		{
			`skip_block_devices = [{ serial = "D2" }, { volume_name = "osd" }]`, `skip_block_devices = [{ serial = "D3", model = "m" }]`,
			in("properties", map[string]any{"skip_block_devices": []any{
				map[string]any{"serial": "D2"}, map[string]any{"volume_name": "osd"},
			}}),
			in("properties", map[string]any{"skip_block_devices": []any{map[string]any{"serial": "D3", "model": "m"}}}),
			in("properties", map[string]any{"skip_block_devices": nil}),
		},
		{
			`extra = { team = "web", rack = { row = 3, units = [1, 2] } }`, `extra = { team = "db", rack = { row = 4, free = true } }`,
			in("extra", map[string]any{"team": "web", "rack": map[string]any{"row": 3.0, "units": []any{1.0, 2.0}}, "others": "mine"}),
			in("extra", map[string]any{"team": "db", "rack": map[string]any{"row": 4.0, "units": nil, "free": true}, "others": "mine"}),
			in("extra", map[string]any{"team": nil, "rack": nil, "others": "mine"}),
		},
		{
			`driver_info = { deploy_kernel = "http://images/k1", rescue_ramdisk = "http://images/r" }`,
			`driver_info = { deploy_kernel = "http://images/k2" }`,
			in("driver_info", map[string]any{"deploy_kernel": "http://images/k1", "rescue_ramdisk": "http://images/r", "others": "mine"}),
			in("driver_info", map[string]any{"deploy_kernel": "http://images/k2", "rescue_ramdisk": nil, "others": "mine"}),
			in("driver_info", map[string]any{"deploy_kernel": nil, "others": "mine"}),
		},
		{
			`network_data = jsonencode({ links = [` + link("phy") + `], networks = [], services = [] })`,
			`network_data = jsonencode({ services = [], networks = [], links = [` + link("vif") + `] })`,
			in("network_data", network("phy")), in("network_data", network("vif")), in("network_data", map[string]any{"links": nil}),
		},
		{
			`hardware_interfaces = { deploy = "direct", boot = "ipxe" }`, `hardware_interfaces = { deploy = "ramdisk" }`,
			map[string]any{"deploy_interface": "direct", "boot_interface": "ipxe"},
			map[string]any{"deploy_interface": "ramdisk", "boot_interface": "fake"},
			map[string]any{"deploy_interface": "fake", "boot_interface": "fake"},
		},
		{
			`traits = ["CUSTOM_NVME", "CUSTOM_GPU"]`, `traits = ["CUSTOM_GPU", "HW_CPU_X86_VMX"]`,
			in("traits", []any{"CUSTOM_GPU", "CUSTOM_NVME", "CUSTOM_OTHERS"}),
			in("traits", []any{"CUSTOM_GPU", "CUSTOM_OTHERS", "HW_CPU_X86_VMX"}),
			in("traits", []any{"CUSTOM_OTHERS"}),
		},
	}
}

// merged returns the values that Ironic has of all the settings together.
func merged(all []setting, when func(setting) map[string]any) map[string]any {
	node := map[string]any{}
	for _, one := range all {
		for key, value := range when(one) {
			if below, ok := value.(map[string]any); ok && node[key] != nil {
				into, _ := node[key].(map[string]any)
				maps.Copy(into, below)
				continue
			}
			node[key] = value
		}
	}
	return node
}

func TestAccHost_settingsChangeInPlace(t *testing.T) {
	s := site.Start(t, nil)
	all := settings(s)
	var first, second []string
	for _, one := range all {
		first, second = append(first, one.first), append(second, one.second)
	}
	name := s.Name("h")
	stays := statecheck.CompareValue(compare.ValuesSame())
	same := func() statecheck.StateCheck { return stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id")) }
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s), ConfigStateChecks: []statecheck.StateCheck{same()}},
		resource.TestStep{
			PreConfig: func() { // other clients set values on the node
				s.Patch(name, "add", "/properties/local_gb", 100)
				s.Patch(name, "add", "/properties/capabilities", "cat:meow")
				s.Patch(name, "add", "/extra/others", "mine")
				s.Patch(name, "add", "/driver_info/others", "mine")
				site.AddTrait(s, name, "CUSTOM_OTHERS")
			},
			Config:            hostConfig(s, first...),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same(), nodeHas(s, merged(all, func(x setting) map[string]any { return x.has }))},
		},
		resource.TestStep{
			Config:            hostConfig(s, second...),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same(), nodeHas(s, merged(all, func(x setting) map[string]any { return x.then }))},
		},
		resource.TestStep{
			Config:            hostConfig(s), // removed settings are reset
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same(), nodeHas(s, merged(all, func(x setting) map[string]any { return x.unset }))},
		},
	)
}

func TestAccHost_createWithEverySetting(t *testing.T) {
	s := site.Start(t, nil)
	all := settings(s)
	var first []string
	for _, one := range all {
		first = append(first, one.first)
	}
	want := merged(all, func(x setting) map[string]any { return x.has })
	want["properties"] = map[string]any{"capabilities": "boot_mode:uefi,tier:1", "cpus": "4", "cpu_arch": "x86_64"}
	want["extra"], want["driver_info"], want["traits"] = map[string]any{"team": "web"}, nil, []any{"CUSTOM_GPU", "CUSTOM_NVME"}
	delete(want, "driver_info")
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s, first...), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, want)}},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"hardware_interfaces"}, // an import cannot know which are configured
		},
	)
}

func TestAccHost_unmanagedSettingsStay(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s)},
		resource.TestStep{
			PreConfig: func() {
				s.Patch(name, "add", "/description", "by hand")
				s.Patch(name, "add", "/resource_class", "by-hand")
				s.Patch(name, "add", "/owner", "somebody")
				s.Patch(name, "add", "/automated_clean", false)
				s.Patch(name, "add", "/retired", true)
				s.Patch(name, "add", "/deploy_interface", "direct")
				s.Patch(name, "add", "/properties/cpus", 4)
				s.Patch(name, "add", "/extra/by", "hand")
				s.Must(http.MethodPut, "nodes/"+name+"/maintenance", map[string]any{"reason": "by hand"})
				site.AddTrait(s, name, "CUSTOM_HAND")
				s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": s.Node(name)["uuid"], "address": s.MAC(1)})
			},
			Config:           hostConfig(s),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
		},
		resource.TestStep{
			Config:           hostConfig(s, `lessee = "carol"`),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{
				"lessee": "carol", "description": "by hand", "resource_class": "by-hand", "owner": "somebody", "automated_clean": false,
				"retired":          true,
				"deploy_interface": "direct", "properties": map[string]any{"cpus": 4.0}, "extra": map[string]any{"by": "hand"},
				"maintenance": true, "maintenance_reason": "by hand", "traits": []any{"CUSTOM_HAND"},
			})},
		},
	)
}

func TestAccHost_extraKeepsTypes(t *testing.T) {
	s := site.Start(t, nil)
	extra := func(hcl string) string { return hostConfig(s, "extra = "+hcl) }
	has := func(want map[string]any) []statecheck.StateCheck {
		return []statecheck.StateCheck{nodeHas(s, map[string]any{"extra": want})}
	}
	acctest.Test(t,
		resource.TestStep{
			Config:            extra(`{ a = "2", b = "x", c = null }`),
			ConfigStateChecks: has(map[string]any{"a": "2", "b": "x", "c": nil}),
		},
		resource.TestStep{
			Config:            extra(`{ a = 2, b = false, c = "", d = 0, e = [] }`),
			ConfigStateChecks: has(map[string]any{"a": 2.0, "b": false, "d": 0.0, "e": []any{}}),
		},
		resource.TestStep{
			Config:            extra(`{ a = null, b = true, f = { g = null } }`),
			ConfigStateChecks: has(map[string]any{"a": nil, "b": true, "c": nil, "d": nil, "e": nil}),
		},
	)
}

func TestAccHost_isRenamedInPlace(t *testing.T) {
	s := site.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	named := func(name string) string { return s.Provider() + acctest.HostBlock(name, `driver = "fake-hardware"`) }
	acctest.Test(t,
		resource.TestStep{
			Config:            named(s.Name("old")),
			ConfigStateChecks: []statecheck.StateCheck{stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id"))},
		},
		resource.TestStep{
			Config:           named(s.Name("new")),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{
				stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id")), nodeHas(s, map[string]any{"name": s.Name("new")}),
			},
		},
	)
}

func TestAccHost_portsAreAddedChangedAndRemoved(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	ports := func(entries ...string) string { return hostConfig(s, "ports = {\n"+strings.Join(entries, "\n")+"\n}") }
	port := func(n int, body string) string { return acctest.Quoted(s.MAC(n)) + " = { " + body + " }" }
	link := func(port string) string {
		return `local_link_connection = { switch_id = "00:11:22:33:44:55", port_id = ` + acctest.Quoted(port) + `, switch_info = "tor1" }`
	}
	has := func(n int, want map[string]any) statecheck.StateCheck { return onPort{s, s.MAC(n), want} }
	acctest.Test(t,
		resource.TestStep{
			Config: ports(port(1, ``), port(2, `pxe_enabled = false, physical_network = "a", `+link("Eth1"))),
			ConfigStateChecks: []statecheck.StateCheck{
				has(1, map[string]any{"pxe_enabled": true, "physical_network": nil}),
				has(2, map[string]any{
					"pxe_enabled": false, "physical_network": "a",
					"local_link_connection": map[string]any{"port_id": "Eth1", "switch_info": "tor1"},
				}),
				hostIs("ports", knownvalue.MapPartial(map[string]knownvalue.Check{
					s.MAC(1): knownvalue.ObjectPartial(map[string]knownvalue.Check{"pxe_enabled": knownvalue.Bool(true)}),
				})),
			},
		},
		resource.TestStep{
			PreConfig: func() { // another client adds a port
				s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": s.Node(name)["uuid"], "address": s.MAC(3)})
			},
			Config: ports(port(2, `pxe_enabled = true, physical_network = "b", `+link("Eth2")), port(0, ``)),
			ConfigStateChecks: []statecheck.StateCheck{
				has(0, map[string]any{"pxe_enabled": true}),
				has(1, nil),
				has(2, map[string]any{
					"pxe_enabled": true, "physical_network": "b",
					"local_link_connection": map[string]any{"port_id": "Eth2"},
				}),
				has(3, map[string]any{}),
			},
		},
		resource.TestStep{
			Config:            hostConfig(s),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{has(0, nil), has(2, nil), has(3, map[string]any{})},
		},
	)
}

func TestAccHost_conductorGroupWithoutConductorIsRefused(t *testing.T) {
	s := site.Start(t, nil)
	refused := regexp.MustCompile(acctest.Wrapped("No running conductor serves this driver in this conductor group"))
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s, `conductor_group = "nowhere"`), ExpectError: refused},
		resource.TestStep{Config: hostConfig(s)},
		resource.TestStep{Config: hostConfig(s, `conductor_group = "nowhere"`), ExpectError: refused},
		resource.TestStep{Config: hostConfig(s), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop)},
	)
}

// refusing is a fake that refuses requests of a method whose path contains a text, until the test tells it to stop.
func refusing(method, path string) (fake *fakeironic.Server, refuses *atomic.Bool) {
	refuses = &atomic.Bool{}
	return &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if refuses.Load() && r.Method == method && strings.Contains(r.URL.Path, path) {
			return &fakeironic.Rejection{Status: http.StatusBadRequest}
		}
		return nil
	}}, refuses
}

// Ironic refuses a part of an update, after another part has changed the node. Applying the former configuration restores it.
func TestFakeHost_formerConfigurationUndoesPartialUpdate(t *testing.T) {
	t.Parallel()
	bad := map[string][]string{
		"a trait":     {`traits = ["HW_NO_SUCH_TRAIT"]`},
		"maintenance": {`maintenance = true`},
		"a port":      {`ports = { "52:54:00:00:00:01" = {} }`},
	}
	for what, more := range bad {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			fake, refuses := refusing(http.MethodPut, "/maintenance")
			if what == "a port" {
				fake, refuses = refusing(http.MethodPost, "/ports")
			}
			refuses.Store(true)
			s := site.StartFake(t, fake)
			name := s.Name("h")
			config := func(version int, more ...string) string {
				password := withPassword(fmt.Sprintf("secret-%d", version), version)
				return enrolled(s, append(more, bmc.Block("ipmi://192.0.2.36", password))...)
			}
			w := acctest.NewWorkspace(t, config(1))
			w.Must(acctest.Apply()...)
			w.Configure(config(2, append(more, `automated_clean = false`, `retired = true`, `extra = { team = "web" }`)...))
			acctest.Fails(t, w, acctest.Apply(), "Could not")
			w.Configure(config(1))
			w.Must(acctest.Apply()...)
			node, _ := fake.Node(name)
			want := map[string]any{
				"driver_info": map[string]any{"ipmi_password": "secret-1"}, "automated_clean": nil, "retired": false,
				"extra":  map[string]any{"team": nil},
				"traits": []any{}, "maintenance": false,
			}
			if found := lacks("", node.Raw, want); len(found) > 0 {
				t.Errorf("the node in Ironic: %v", found)
			}
			acctest.NoChanges(t, w)
		})
	}
}

// A failed update has not removed all that it should. The next update removes the rest.
func TestFakeHost_nextUpdateFinishesPartialUpdate(t *testing.T) {
	t.Parallel()
	for what, path := range map[string]string{"traits": "/traits/", "maintenance": "/maintenance", "ports": "/ports/"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			fake, refuses := refusing(http.MethodDelete, path)
			s := site.StartFake(t, fake)
			name := s.Name("h")
			w := acctest.NewWorkspace(t, hostConfig(s, `traits = ["CUSTOM_NVME"]`, `maintenance = true`, `ports = { `+
				acctest.Quoted(s.MAC(1))+` = {} }`, `description = "old"`))
			w.Must(acctest.Apply()...)
			refuses.Store(true)
			w.Configure(hostConfig(s))
			acctest.Fails(t, w, acctest.Apply(), "Could not")
			refuses.Store(false)
			w.Must(acctest.Apply()...)
			if found := lacks("", s.Node(name), map[string]any{
				"traits": []any{}, "maintenance": false,
				"description": nil,
			}); len(found) > 0 {
				t.Errorf("the node in Ironic: %v", found)
			}
			if port := portOf(s, s.MAC(1)); port != nil {
				t.Errorf("port %v is left", port)
			}
			acctest.NoChanges(t, w)
		})
	}
}

// Ironic 21.4 and 39 call the bond mode of LACP by different names, and say only that a link is not valid. The plan says which.
func TestAccHost_bondModeOfNetworkDataIsExplained(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	taken, other := "802.3ad", "802.1ad"
	switch newest := s.Newest(); {
	case newest <= 82:
		taken, other = other, taken
	case newest < 115:
		t.Skip("which name this Ironic takes was not measured")
	}
	config := func(mode string) string {
		return hostConfig(s,
			fmt.Sprintf(
				`network_data = jsonencode({ links = [{ id = "b", type = "bond", ethernet_mac_address = %q, bond_mode = %q, bond_links = [] }], networks = [], services = [] })`, s.MAC(1), mode))
	}
	w := acctest.NewWorkspace(t, config(other))
	const summary = "Bond mode has another name in this Ironic"
	acctest.Mention(t, w.Must("plan"), summary, fmt.Sprintf("links[0].bond_mode: %q must be %q", other, taken))
	w.Configure(config(taken))
	defer acctest.Destroy(t, s, w)
	acctest.NeverMention(t, w.Must(acctest.Apply()...), summary)
	acctest.NoChanges(t, w)
	w.Configure(config(other))
	acctest.Fails(t, w, acctest.Apply(), summary)
}
