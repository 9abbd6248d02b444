package host_test

import (
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
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const (
	fakeConsole    = `hardware_interfaces = { console = "fake" }`
	consoleEnabled = `console = "enabled"`
)

// consoleRequests returns the changes of consoles and drivers that the fake has got.
func consoleRequests(s *site.Site) (sent []string) {
	for _, r := range s.Fake.Requests() {
		switch {
		case r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/console"):
			sent = append(sent, r.Body)
		case r.Method == http.MethodPatch && strings.Contains(r.Body, "console_interface"):
			sent = append(sent, "PATCH")
		}
	}
	return sent
}

func TestAccHost_console(t *testing.T) {
	s := site.Start(t, nil)
	has := func(enabled bool) []statecheck.StateCheck {
		return []statecheck.StateCheck{nodeHas(s, map[string]any{"console_enabled": enabled})}
	}
	set := func(enabled bool) func() {
		return func() {
			id, _ := s.Node(s.Name("h"))["uuid"].(string)
			s.Must(http.MethodPut, "nodes/"+id+"/states/console", map[string]any{"enabled": enabled})
			s.Await(id, "console_enabled", enabled)
		}
	}
	acctest.Test(t,
		resource.TestStep{
			Config:            hostConfig(s, fakeConsole, consoleEnabled),
			ConfigStateChecks: append(has(true), hostIs("cleanings", knownvalue.Int64Exact(0))),
		},
		resource.TestStep{ // drift
			PreConfig: set(false), Config: hostConfig(s, fakeConsole, consoleEnabled),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: has(true),
		},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"console", "hardware_interfaces"},
		},
		resource.TestStep{
			Config:           hostConfig(s, fakeConsole, `console = "disabled"`),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: has(false),
		},
		resource.TestStep{Config: hostConfig(s, fakeConsole, consoleEnabled), ConfigStateChecks: has(true)},
		resource.TestStep{ // what is removed stays as it is, and is not managed any more
			Config: hostConfig(s, fakeConsole), ConfigStateChecks: append(has(true), hostIs("console", knownvalue.Null())),
		},
		resource.TestStep{
			PreConfig: set(false), Config: hostConfig(s, fakeConsole),
			ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
		},
	)
}

// Ironic would leave the process of the old interface behind.
func TestFakeHost_consoleIsClosedBeforeItsInterfaceChanges(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.82"}) // 39 has no shellinabox
	ipmi := func(console string, settings ...string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{
			bmc.Block("ipmi://192.0.2.60", withPassword("secret", 1)), `driver_info = { ipmi_terminal_port = "8023" }`,
			`hardware_interfaces = { console = ` + acctest.Quoted(console) + ` }`,
		}, settings...)...)
	}
	const on, off = `{"enabled":true}`, `{"enabled":false}`
	w := acctest.NewWorkspace(t, ipmi("ipmitool-shellinabox", consoleEnabled))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	for _, tt := range []struct {
		config string
		want   []string
	}{
		{ipmi("ipmitool-socat", consoleEnabled), []string{off, "PATCH", on}},
		{ipmi("no-console", `console = "disabled"`), []string{off, "PATCH"}},
		{ipmi("ipmitool-socat", consoleEnabled), []string{"PATCH", on}},
	} {
		w.Configure(tt.config)
		s.Fake.ResetRequests()
		w.Must(acctest.Apply()...)
		if sent := consoleRequests(s); !slices.Equal(sent, tt.want) {
			t.Errorf("sent %v, want %v", sent, tt.want)
		}
		acctest.NoChanges(t, w)
	}
	w.Configure(ipmi("ipmitool-socat"))
	w.Must(acctest.Apply()...)
	w.Configure(ipmi("ipmitool-shellinabox")) // the console is not managed any more
	acctest.Fails(t, w, []string{"plan"}, "Console is enabled", "Set console = \"disabled\" to disable it in the same apply")
	w.Configure(ipmi("ipmitool-shellinabox", `console = "disabled"`))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

// A console that the BMC refuses is tried again by the next apply.
func TestFakeHost_failedConsoleIsTriedAgain(t *testing.T) {
	fails := true
	fake := &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if fails && verb == "console" {
			return "the BMC has no SOL"
		}
		return ""
	}}
	s := site.StartFake(t, fake)
	failing := regexp.MustCompile(acctest.Wrapped("The console of node "+s.Name("h")) + `[\s\S]*` + acctest.Wrapped("was not enabled") +
		`[\s\S]*` + acctest.Wrapped("the BMC has no SOL"))
	acctest.Test(t,
		resource.TestStep{Config: hostConfig(s, fakeConsole)},
		resource.TestStep{Config: hostConfig(s, fakeConsole, consoleEnabled), ExpectError: failing},
		resource.TestStep{
			PreConfig: func() { fails = false },
			Config:    hostConfig(s, fakeConsole, consoleEnabled), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{"console_enabled": true, "last_error": nil})},
		},
	)
}

// An address that is not known yet may leave the driver as it is, so the plan does not refuse it.
func TestFakeHost_consoleAndAnAddressThatIsNotKnown(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(unit string) string {
		return s.Provider() + "resource \"terraform_data\" \"bmc\" {\n  input = " + acctest.Quoted(unit) + "\n}\n" +
			acctest.HostBlock(s.Name("h"), `bmc = { address = "ipmi://192.0.2.${terraform_data.bmc.output}" }`,
				`driver_info = { ipmi_terminal_port = "8023" }`, `hardware_interfaces = { console = "ipmitool-socat" }`)
	}
	w := acctest.NewWorkspace(t, config("60"))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	s.Fake.Set(s.Name("h"), "console_enabled", true) // by an operator
	w.Configure(config("61"))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Console is enabled")
	if sent := consoleRequests(s); len(sent) > 0 || s.Node(s.Name("h"))["console_enabled"] != true {
		t.Errorf("sent %v", sent)
	}
	acctest.NoChanges(t, w)
}
