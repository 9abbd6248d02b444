package host_test

import (
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccHost_targetStateChanges(t *testing.T) {
	s := site.Start(t, nil)
	at := func(state string) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			hostIs("provision_state", knownvalue.StringExact(state)), nodeHas(s, map[string]any{"provision_state": state}),
		}
	}
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s, acctest.Target("enroll")), ConfigStateChecks: at("enroll")},
		resource.TestStep{
			Config: hostConfig(s, acctest.Target("manageable")), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: at("manageable"),
		},
		resource.TestStep{
			Config: hostConfig(s, acctest.Target("available")), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: at("available"),
		},
		resource.TestStep{
			Config: hostConfig(s), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
			ConfigStateChecks: at("available"),
		},
		resource.TestStep{
			Config:      hostConfig(s, acctest.Target("enroll")),
			ExpectError: regexp.MustCompile(acctest.Wrapped("A node cannot return to state enroll. Leave target_state as it is")),
		},
		resource.TestStep{
			Config: hostConfig(s, acctest.Target("manageable")), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: at("manageable"),
		},
	)
}

func TestFakeHost_failedCreationIsTaintedAndReplaced(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "manage" && broken.Load() {
			return "Failed to get power state for node. Error: IPMI call failed: power status."
		}
		return ""
	}})
	w := acctest.NewWorkspace(t, hostConfig(s, `ports = { `+acctest.Quoted(s.MAC(1))+` = {} }`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "Could not prepare node "+s.Name("h"), "IPMI call failed: power status", `is in state "enroll"`,
		"The BMC did not answer over IPMI, or refused. Check bmc: address")
	host := acctest.InState(t, w, acctest.HostAddress)
	if host == nil || !host.Tainted {
		t.Fatalf("the state has %+v, want a tainted host", host)
	}
	first := site.Text(host.Values["id"])
	if s.Node(first) == nil || host.Values["provision_state"] != "enroll" || host.Values["last_error"] == nil {
		t.Errorf("the state has %v, want the node as Ironic has it: %v", host.Values, s.Node(first))
	}

	broken.Store(false)
	acctest.NeverMention(t, w.Must("apply", "-auto-approve"), "Interrupted creation is continued") // the node is in the state
	second := acctest.InState(t, w, acctest.HostAddress)
	if second.Tainted || second.Values["id"] == first || s.Node(first) != nil {
		t.Errorf("after the next apply the state has %+v, and Ironic still has the first node: %v", second, s.Node(first) != nil)
	}
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}

// A mistyped BMC is found by the first apply, on the fake as on a real Ironic, and the next apply with the right one goes on.
func TestFakeHost_mistypedBMC(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{Answers: func(bmc string) bool { return bmc != "192.0.2.99" }})
	config := func(address string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), bmc.Block(address, withPassword("secret", 1)))
	}
	w := acctest.NewWorkspace(t, "")
	for _, wrong := range []string{"ipmi://192.0.2.99", "redfish://192.0.2.99", "redfish://rack1-bmc.invalid"} {
		w.Configure(config(wrong))
		acctest.Fails(t, w, acctest.Apply(), "Check bmc", "Failed to get")
		if node := s.Node(s.Name("h")); node["provision_state"] != "enroll" || node["last_error"] == nil {
			t.Errorf("%s: the node is %v, %v", wrong, node["provision_state"], node["last_error"])
		}
	}
	w.Configure(config("redfish://192.0.2.98"))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}

func TestFakeHost_nextApplyRepeatsFailedCleaning(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "provide" && broken.Load() {
			return "Clean step deploy.erase_devices failed"
		}
		return ""
	}})
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")

	broken.Store(true)
	w.Configure(hostConfig(s, acctest.Target("available"), `description = "arrived"`))
	wantCleanings(t, w, "0 -> 1")
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "Clean step deploy.erase_devices failed", "The node may still hold data, so Ironic does not allocate it. "+
		"Fix the cause and apply again")
	if host := acctest.InState(t, w, acctest.HostAddress); host.Tainted || host.Values["description"] != "arrived" ||
		host.Values["provision_state"] != "clean failed" {
		t.Errorf("the state has %+v, want an untainted host with the settings that Ironic has", host)
	}

	// A failed clean step leaves the node in maintenance with a fault. A second try must end that first.
	s.Fake.Set(name, "maintenance", true)
	s.Fake.Set(name, "fault", "clean failure")
	broken.Store(false)
	site.ForgetVerbs(s)
	wantCleanings(t, w, "0 -> 1") // what failed is not counted, and the repeat is
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]), "manage", "provide")
	node, _ := s.Fake.Node(name)
	if node.ProvisionState != "available" || node.Maintenance {
		t.Errorf("the node is %s, maintenance %v", node.ProvisionState, node.Maintenance)
	}
	acctest.NoChanges(t, w)
}

func TestAccHost_isInspectedOnce(t *testing.T) {
	s := site.Start(t, nil)
	var first any
	acctest.Test(t,
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

func TestAccHost_powerStateChanges(t *testing.T) {
	s := site.Start(t, nil)
	name := s.Name("h")
	is := func(state string) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			hostIs("power_state", knownvalue.StringExact(state)),
			nodeHas(s, map[string]any{"power_state": "power " + state}),
		}
	}
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s, `power_state = "on"`), ConfigStateChecks: is("on")},
		resource.TestStep{
			PreConfig: func() { // the machine loses power
				s.Must(http.MethodPut, "nodes/"+name+"/states/power", map[string]any{"target": "power off"})
				s.Await(name, "power_state", "power off")
			},
			Config:            hostConfig(s, `power_state = "on"`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: is("on"),
		},
		resource.TestStep{
			Config: hostConfig(s, `power_state = "off"`), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: is("off"),
		},
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

func TestAccHost_withoutBMCIsNotPrepared(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{`driver = "ipmi"`, acctest.Target("available")},
			settings...)...)
	}
	w := acctest.NewWorkspace(t, config(`power_state = "on"`))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Host without BMC", "Ironic knows no BMC of host "+s.Name("h"), `provision_state = "enroll"`,
		"power_managed = false")
	if regexp.MustCompile("Cleaning erases data").MatchString(output) {
		t.Errorf("the plan warns of cleaning, though there is no BMC:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	host := acctest.InState(t, w, acctest.HostAddress)
	if host.Values["power_managed"] != false || host.Values["provision_state"] != "enroll" {
		t.Errorf("the state has %v", host.Values)
	}
	site.WantVerbs(t, s, site.Text(host.Values["id"]))
	output, changes := w.Plan()
	acctest.Mention(t, output, "Host without BMC", "stays in state enroll and does not become available, and its power is not switched")
	if changes {
		t.Errorf("the plan after the apply is not empty:\n%s", output)
	}
}

func TestFakeHost_bmcIsKnownOnlyAfterApply(t *testing.T) {
	s := site.StartFake(t, nil)
	config := func(body string) string {
		return s.Provider() + "resource \"terraform_data\" \"bmc\" {\n  input = \"192.0.2.37\"\n}\n" + acctest.HostBlock(s.Name("h"), body)
	}
	managed := []statecheck.StateCheck{
		hostIs("power_managed", knownvalue.Bool(true)), hostIs("driver", knownvalue.StringExact("ipmi")),
		nodeHas(s, map[string]any{"provision_state": "manageable", "driver_info": map[string]any{"ipmi_address": "192.0.2.37"}}),
	}
	acctest.Test(t,
		resource.TestStep{Config: config(`bmc = { address = "ipmi://${terraform_data.bmc.output}" }`), ConfigStateChecks: managed},
		resource.TestStep{Config: s.Provider(), Check: nothingLeft(s)},
		resource.TestStep{
			Config:            config("driver = \"ipmi\"\n  driver_info = { ipmi_address = terraform_data.bmc.output }"),
			ConfigStateChecks: managed,
		},
	)
}
