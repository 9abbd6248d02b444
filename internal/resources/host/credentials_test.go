package host_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// imported is the HCL that imports a node as the host "h".
func imported(id string) string {
	return fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", acctest.HostAddress, id)
}

// Every plan says that a discovered machine cannot reach its target state, and promises nothing that the apply does not do, until
// the host has a BMC.
func TestFakeHost_everyPlanSaysThatTargetIsOutOfReach(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	id := s.Fake.Discover(s.Machine(1))
	config := func(settings ...string) string {
		return s.Provider() + imported(id) + acctest.HostBlock(s.Name("h"), append([]string{acctest.Target("available")}, settings...)...)
	}
	out := []string{"Host without BMC", "stays in state enroll and does not become available", "bmc with address, username and password_wo"}
	w := acctest.NewWorkspace(t, config())
	output, _ := w.Plan()
	acctest.Mention(t, output, out...)
	for _, promise := range []string{"Cleaning erases data", "known after apply", "power_managed = true"} {
		if strings.Contains(strings.Join(strings.Fields(output), " "), promise) {
			t.Errorf("the first plan promises %q:\n%s", promise, output)
		}
	}
	acctest.Mention(t, w.Must(acctest.Apply()...), out...)
	for range 2 {
		output, changes := w.Plan()
		acctest.Mention(t, output, out...)
		if changes {
			t.Errorf("a later plan has changes:\n%s", output)
		}
	}
	acctest.NoDrift(t, w)
	acctest.Fails(t, acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(id), acctest.Image("a"))), acctest.Apply(),
		"Ironic knows no BMC of it", "Give its metal_host a bmc")

	w.Configure(config(bmc.Block("ipmi://192.0.2.61")))
	if output := w.Must(acctest.Apply()...); strings.Contains(output, "Host without BMC") {
		t.Errorf("the plan warns though there is a BMC:\n%s", output)
	}
	if host := acctest.InState(t, w, acctest.HostAddress); host.Values["provision_state"] != "available" ||
		host.Values["power_managed"] != true {
		t.Errorf("the host is %v", host.Values)
	}
	acctest.NoChanges(t, w)
}

// A wrong password is an error, and every apply tries again until it is right, also if target_state is enroll.
func TestFakeHost_wrongPasswordIsAnError(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"no target state": "", "enroll": acctest.Target("enroll")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var right atomic.Bool
			s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
				if verb == "manage" && !right.Load() {
					return "Failed to get power state: invalid password"
				}
				return ""
			}})
			id := s.Fake.Discover(s.Machine(1))
			config := func(password string) string {
				return s.Provider() + imported(id) + acctest.HostBlock(s.Name("h"), target,
					bmc.Block("ipmi://192.0.2.63", `username = "root"`, "password = "+acctest.Quoted(password)))
			}
			w := acctest.NewWorkspace(t, config("wrong"))
			for range 2 {
				acctest.Fails(t, w, acctest.Apply(), "invalid password", "Check its address and credentials")
			}
			right.Store(true)
			w.Configure(config("calvin"))
			w.Must(acctest.Apply()...)
			if got := site.Verbs(s, id); !slices.Equal(got, []string{"manage", "manage", "manage"}) {
				t.Errorf("sent were %v", got)
			}
			if state := s.Node(id)["provision_state"]; state != "manageable" {
				t.Errorf("the node is %v", state)
			}
			acctest.NoChanges(t, w)
		})
	}
}

// A new host with the fake driver may turn out to be a discovered machine. Then the apply says that the target state is out of
// reach, and so does every later plan.
func TestFakeHost_applyFindsDiscoveredMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	s.Fake.Discover(s.Machine(1))
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("available"),
		fmt.Sprintf("ports = { %q = {} }", s.MAC(1))))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Host without BMC")
	output, changes := w.Plan()
	acctest.Mention(t, output, "Host without BMC")
	if changes {
		t.Errorf("the second plan has changes:\n%s", output)
	}
}

// A user name without a password is a warning while planning.
func TestFakeHost_userNameWithoutPasswordWarns(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for settings, warns := range map[string]bool{
		`username = "root"`:                         true,
		"username = \"root\"\n    password = \"a\"": false,
		"username = \"root\"\n    password_wo = \"a\"\n    password_wo_version = 1": false,
		"": false,
	} {
		output, _ := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), bmc.Block("ipmi://192.0.2.64", settings))).Plan()
		if got := strings.Contains(output, "BMC without a password"); got != warns {
			t.Errorf("%s: warned is %v, want %v:\n%s", settings, got, warns, output)
		}
	}
}

// An update to a driver that the site lacks lists those that it has.
func TestAccHost_changeToUnknownDriverListsDrivers(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(driver string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), "driver = "+acctest.Quoted(driver), acctest.Target("enroll"))
	}
	w := acctest.NewWorkspace(t, config("fake-hardware"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	w.Configure(config("redfsh"))
	acctest.Fails(t, w, acctest.Apply(), "no driver redfsh. Enabled are", "fake-hardware", "Set driver to one of them")
	w.Configure(config("fake-hardware"))
	acctest.NoChanges(t, w)
}

// A plan refuses a hardware interface that no conductor has enabled, and lists those that the driver has here.
func TestAccHost_unknownInterfaceIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(inner string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("enroll"), inner)
	}
	w := acctest.NewWorkspace(t, config(`hardware_interfaces = { boot = "ipxee" }`))
	defer acctest.Destroy(t, s, w)
	wants := []string{"hardware_interfaces = { boot = \"ipxee\" }", "Driver fake-hardware has no boot interface ipxee at this site. " +
		"Enabled are", "fake", "enabled_boot_interfaces"}
	acctest.Fails(t, w, []string{"plan"}, wants...)
	w.Configure(config(""))
	w.Must(acctest.Apply()...)
	w.Configure(config(`hardware_interfaces = { boot = "ipxee" }`))
	acctest.Fails(t, w, []string{"plan"}, wants...)
	w.Configure(config(""))
	acctest.NoChanges(t, w)
}
