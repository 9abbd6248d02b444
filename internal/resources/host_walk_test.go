package resources_test

import (
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// target is the HCL of a target state.
func target(state string) string { return "target_state = " + quoted(state) }

func TestAccHost_walksToAvailableAndBackButNeverToEnroll(t *testing.T) {
	s := acctest.Start(t, nil)
	at := func(state string) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			hostIs("provision_state", knownvalue.StringExact(state)), nodeHas(s, map[string]any{"provision_state": state}),
		}
	}
	test(t,
		resource.TestStep{Config: hostConfig(s, target("enroll")), ConfigStateChecks: at("enroll")},
		resource.TestStep{Config: hostConfig(s, target("manageable")), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: at("manageable")},
		resource.TestStep{Config: hostConfig(s, target("available")), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: at("available")},
		resource.TestStep{Config: hostConfig(s), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop), ConfigStateChecks: at("available")},
		resource.TestStep{Config: hostConfig(s, target("enroll")), ExpectError: regexp.MustCompile(wrapped("A node cannot return to enroll. Leave target_state as it is, or delete the host"))},
		resource.TestStep{Config: hostConfig(s, target("manageable")), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: at("manageable")},
	)
}

func TestAccHost_madeAvailableCanBeAllocated(t *testing.T) {
	s := acctest.Start(t, nil)
	test(t, resource.TestStep{
		Config: hostConfig(s, target("available"), `resource_class = `+quoted(s.Class())) +
			"resource \"metal_allocation\" \"a\" {\n  resource_class = metal_host.h.resource_class\n  depends_on = [metal_host.h]\n}\n",
		ConfigStateChecks: []statecheck.StateCheck{
			hostIs("power_state", knownvalue.StringExact("off")), // Ironic allocates no node whose power state it does not know
			statecheck.CompareValuePairs("metal_allocation.a", tfjsonpath.New("node_id"), hostAddress, tfjsonpath.New("id"), compare.ValuesSame()),
		},
	})
}

func TestAccHost_planWarnsBeforeTheMachineIsTouched(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	const warning = "Cleaning erases data"
	w := acctest.NewWorkspace(t, hostConfig(s, target("available"), `inspect = true`, `power_state = "on"`))
	output, _ := w.Plan()
	mention(t, output, warning, "Host "+s.Name("h")+" becomes available, and Ironic cleans it on the way",
		"Host "+s.Name("h")+" is inspected: it boots for that", "Host "+s.Name("h")+" is switched on")

	w.Configure(hostConfig(s, target("available"), `automated_clean = false`))
	if output, _ := w.Plan(); regexp.MustCompile(warning).MatchString(output) {
		t.Errorf("the plan warns of cleaning, though automated_clean is false:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	defer destroy(t, s, w)

	w.Configure(hostConfig(s, target("available")))
	if output := w.Must("apply", "-auto-approve"); regexp.MustCompile(warning).MatchString(output) {
		t.Errorf("a host that is available already is said to be cleaned:\n%s", output)
	}
	s.Verb(s.Name("h"), "manage", "manageable") // somebody takes it out of service
	output, changes := w.Plan()
	if !changes {
		t.Errorf("the plan is empty, though the node is only manageable:\n%s", output)
	}
	mention(t, output, warning)
}

func TestFakeHost_failedCreationIsTaintedAndReplaced(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	s := acctest.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "manage" && broken.Load() {
			return "Failed to get power state for node. Error: IPMI call failed: power status."
		}
		return ""
	}})
	w := acctest.NewWorkspace(t, hostConfig(s, `ports = { `+quoted(s.MAC(1))+` = {} }`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	mention(t, output, "Could not prepare node "+s.Name("h"), "IPMI call failed: power status", `is in state "enroll"`,
		"Ironic could not reach the machine's BMC. Check its address and credentials")
	host := inState(t, w, hostAddress)
	if host == nil || !host.Tainted {
		t.Fatalf("in state is %+v, want a tainted host", host)
	}
	first := text(host.Values["id"])
	if s.Node(first) == nil || host.Values["provision_state"] != "enroll" || host.Values["last_error"] == nil {
		t.Errorf("in state is %v, want the node as Ironic has it: %v", host.Values, s.Node(first))
	}

	broken.Store(false)
	w.Must("apply", "-auto-approve")
	second := inState(t, w, hostAddress)
	if second.Tainted || second.Values["id"] == first || s.Node(first) != nil {
		t.Errorf("after the next apply the state has %+v, and Ironic still has the first node: %v", second, s.Node(first) != nil)
	}
	noChanges(t, w)
	destroy(t, s, w)
}

func TestFakeHost_failedCleaningIsRepeatedByTheNextApply(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := acctest.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "provide" && broken.Load() {
			return "Clean step deploy.erase_devices failed"
		}
		return ""
	}})
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")

	broken.Store(true)
	w.Configure(hostConfig(s, target("available"), `description = "arrived"`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	mention(t, output, "Clean step deploy.erase_devices failed", "The node may still hold data and is not handed out. Mend the cause and apply again")
	if host := inState(t, w, hostAddress); host.Tainted || host.Values["description"] != "arrived" || host.Values["provision_state"] != "clean failed" {
		t.Errorf("in state is %+v, want an untainted host with what has arrived", host)
	}

	// What a failed clean step leaves behind: maintenance with a fault, which must be lifted for a second try.
	s.Fake.Set(name, "maintenance", true)
	s.Fake.Set(name, "fault", "clean failure")
	broken.Store(false)
	forgetVerbs(s)
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, text(inState(t, w, hostAddress).Values["id"]), "manage", "provide")
	node, _ := s.Fake.Node(name)
	if node.ProvisionState != "available" || node.Maintenance {
		t.Errorf("the node is %s, maintenance %v", node.ProvisionState, node.Maintenance)
	}
	noChanges(t, w)
}

func TestAccHost_isInspectedOnce(t *testing.T) {
	s := acctest.Start(t, nil)
	var first any
	test(t,
		resource.TestStep{
			Config:            hostConfig(s, `inspect = true`),
			ConfigStateChecks: []statecheck.StateCheck{hostIs("provision_state", knownvalue.StringExact("manageable"))},
			Check: func(*terraform.State) error {
				first = s.Node(s.Name("h"))["inspection_finished_at"]
				if first == nil {
					return fmt.Errorf("the node was not inspected")
				}
				return nil
			},
		},
		resource.TestStep{Config: hostConfig(s, `inspect = true`), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop)},
		resource.TestStep{
			Config: hostConfig(s, `inspect = true`, `description = "changed"`),
			Check: func(*terraform.State) error {
				if again := s.Node(s.Name("h"))["inspection_finished_at"]; again != first {
					return fmt.Errorf("the node was inspected at %v and again at %v", first, again)
				}
				return nil
			},
		},
	)
}

func TestFakeHost_inspectionFillsTheInventory(t *testing.T) {
	s := acctest.StartFake(t, nil)
	agent := `interfaces = { inspect = "agent" }`
	test(t, resource.TestStep{
		Config: hostConfig(s, `inspect = true`, agent, `ports = { `+quoted(s.MAC(1))+` = {} }`),
		ConfigStateChecks: []statecheck.StateCheck{hostIs("inventory", knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"cpus": knownvalue.Int64Exact(32), "memory_mb": knownvalue.Int64Exact(131072), "cpu_arch": knownvalue.StringExact("x86_64"),
			"manufacturer": knownvalue.StringExact("Example Systems"), "boot_mac": knownvalue.StringExact(s.MAC(1)),
			"disks": knownvalue.ListPartial(map[int]knownvalue.Check{0: knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"name": knownvalue.StringExact("/dev/sda"), "size_bytes": knownvalue.Int64Exact(960197124096), "wwn": knownvalue.Null(),
			})}),
			"interfaces": knownvalue.ListSizeExact(1),
		}))},
	})
}

func TestFakeHost_inspectionWarnsFirst(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, target("available"), `automated_clean = true`))
	w.Must("apply", "-auto-approve")
	w.Configure(hostConfig(s, target("available"), `automated_clean = true`, `inspect = true`))
	output, _ := w.Plan()
	mention(t, output, "Inspection boots the machine", "Cleaning erases data")
	forgetVerbs(s)
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, text(inState(t, w, hostAddress).Values["id"]), "manage", "inspect", "provide")
	noChanges(t, w)
}

func TestFakeHost_showsWhatAnInspectionByOthersFound(t *testing.T) {
	s := acctest.StartFake(t, nil)
	name := s.Name("h")
	test(t,
		resource.TestStep{Config: hostConfig(s), ConfigStateChecks: []statecheck.StateCheck{hostIs("inventory", knownvalue.Null())}},
		resource.TestStep{
			PreConfig: func() {
				s.Fake.SetInventory(name, map[string]any{
					"hostname": nil, "bmc_address": "0.0.0.0", "bmc_v6address": "2001:db8::5",
					"cpu": map[string]any{"count": 8}, "system_vendor": map[string]any{"serial_number": "SN1", "product_name": ""},
					"interfaces": []any{map[string]any{"name": "eno1", "mac_address": s.MAC(1)}},
					"boot":       map[string]any{"pxe_interface": "01-52-54-00-AA-BB-01"},
				}, nil)
				s.Fake.Set(name, "inspection_finished_at", "2026-01-02T03:04:05+00:00")
			},
			RefreshState: true,
		},
		resource.TestStep{
			Config:           hostConfig(s),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
			ConfigStateChecks: []statecheck.StateCheck{hostIs("inventory", knownvalue.ObjectExact(map[string]knownvalue.Check{
				"serial_number": knownvalue.StringExact("SN1"), "cpus": knownvalue.Int64Exact(8), "bmc_address": knownvalue.StringExact("2001:db8::5"),
				"boot_mac": knownvalue.StringExact("52:54:00:aa:bb:01"),
				"hostname": knownvalue.Null(), "product": knownvalue.Null(), "manufacturer": knownvalue.Null(), "cpu_arch": knownvalue.Null(),
				"memory_mb": knownvalue.Null(), "disks": knownvalue.ListSizeExact(0),
				"interfaces": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
					"name": knownvalue.StringExact("eno1"), "mac": knownvalue.StringExact(s.MAC(1)), "ipv4_address": knownvalue.Null(),
					"ipv6_address": knownvalue.Null(), "has_carrier": knownvalue.Null(), "product": knownvalue.Null(), "vendor": knownvalue.Null(),
				})}),
			}))},
		},
	)
}

func TestAccHost_isSwitchedOnAndOffAndBackAgain(t *testing.T) {
	s := acctest.Start(t, nil)
	name := s.Name("h")
	is := func(state string) []statecheck.StateCheck {
		return []statecheck.StateCheck{hostIs("power_state", knownvalue.StringExact(state)), nodeHas(s, map[string]any{"power_state": "power " + state})}
	}
	test(t,
		resource.TestStep{Config: hostConfig(s, `power_state = "on"`), ConfigStateChecks: is("on")},
		resource.TestStep{
			PreConfig: func() { // somebody pulls the plug
				s.Must(http.MethodPut, "nodes/"+name+"/states/power", map[string]any{"target": "power off"})
				s.Await(name, "power_state", "power off")
			},
			Config:            hostConfig(s, `power_state = "on"`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: is("on"),
		},
		resource.TestStep{Config: hostConfig(s, `power_state = "off"`), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: is("off")},
		resource.TestStep{
			PreConfig: func() {
				s.Must(http.MethodPut, "nodes/"+name+"/states/power", map[string]any{"target": "power on"})
				s.Await(name, "power_state", "power on")
			},
			Config:            hostConfig(s), // not managed any more: left as it is
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionNoop),
			ConfigStateChecks: is("on"),
		},
	)
}

func TestAccHost_madeAvailableWithPowerOnStaysOn(t *testing.T) {
	s := acctest.Start(t, nil)
	test(t, resource.TestStep{
		Config: hostConfig(s, target("available"), `power_state = "on"`),
		ConfigStateChecks: []statecheck.StateCheck{
			hostIs("provision_state", knownvalue.StringExact("available")), nodeHas(s, map[string]any{"power_state": "power on"}),
		},
	})
}

func TestAccHost_planWarnsBeforeItSwitchesPower(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, `power_state = "off"`))
	w.Must("apply", "-auto-approve")
	defer destroy(t, s, w)
	w.Configure(hostConfig(s, `power_state = "on"`))
	output, _ := w.Plan()
	mention(t, output, "Power is switched", "Host "+s.Name("h")+" is switched on")
}

func TestAccHost_withoutBMCIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	config := func(settings ...string) string {
		return s.Provider() + hostBlock(s.Name("h"), append([]string{`driver = "ipmi"`, target("available")}, settings...)...)
	}
	w := acctest.NewWorkspace(t, config(`power_state = "on"`))
	output, _ := w.Plan()
	mention(t, output, "Host without BMC", "Ironic knows no BMC of host "+s.Name("h")+": its power is left alone and it is not cleaned")
	if regexp.MustCompile("Cleaning erases data").MatchString(output) {
		t.Errorf("the plan warns of cleaning, though there is no BMC:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	defer destroy(t, s, w)
	host := inState(t, w, hostAddress)
	if host.Values["power_managed"] != false || host.Values["provision_state"] != "enroll" {
		t.Errorf("in state is %v", host.Values)
	}
	wantVerbs(t, s, text(host.Values["id"]))
	noChanges(t, w)
}

func TestFakeHost_bmcIsKnownOnlyAfterApply(t *testing.T) {
	s := acctest.StartFake(t, nil)
	config := func(body string) string {
		return s.Provider() + "resource \"terraform_data\" \"bmc\" {\n  input = \"192.0.2.7\"\n}\n" + hostBlock(s.Name("h"), body)
	}
	managed := []statecheck.StateCheck{
		hostIs("power_managed", knownvalue.Bool(true)), hostIs("driver", knownvalue.StringExact("ipmi")),
		nodeHas(s, map[string]any{"provision_state": "manageable", "driver_info": map[string]any{"ipmi_address": "192.0.2.7"}}),
	}
	test(t,
		resource.TestStep{Config: config(`bmc = { address = "ipmi://${terraform_data.bmc.output}" }`), ConfigStateChecks: managed},
		resource.TestStep{Config: s.Provider(), Check: nothingLeft(s)},
		resource.TestStep{Config: config("driver = \"ipmi\"\n  driver_info = { ipmi_address = terraform_data.bmc.output }"), ConfigStateChecks: managed},
	)
}
