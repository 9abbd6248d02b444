package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// byAgent is the HCL of a host that Ironic prepares through its agent.
const byAgent = `power_control = "agent"`

// wantNoPower fails a test if the fake was asked to switch the power of a machine.
func wantNoPower(t *testing.T, s *site.Site) {
	t.Helper()
	for _, r := range s.Fake.Requests() {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/power") {
			t.Errorf("a verb of power was sent: %s %s %d", r.Path, r.Body, r.Status)
		}
	}
}

// A discovered machine without BMC credentials is verified, cleaned and deployed while Ironic's agent runs on it. With credentials
// that come later it is neither inspected nor deployed again, and can be undeployed.
func TestFakeHostByAgent_wholeLife(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{FastTrack: true})
	id := s.Fake.Discover(s.Machine(1))
	config := func(host []string, deployment ...string) string {
		c := s.Provider() + imported(id) + acctest.HostBlock(s.Name("h"),
			append([]string{"inspect = true", "resource_class = " + acctest.Quoted(s.Class())}, host...)...)
		if len(deployment) > 0 {
			c += acctest.Deployment(acctest.HostAddress+".id", deployment...)
		}
		return c
	}
	agent := []string{byAgent, acctest.Target("available")}
	forget := `on_destroy = "forget"`
	w := acctest.NewWorkspace(t, config(agent))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Cleaning erases data", "manual-management")
	w.Must(acctest.Apply()...)
	host := acctest.InState(t, w, acctest.HostAddress)
	if host.Values["provision_state"] != "available" || host.Values["power_managed"] != false ||
		host.Values["driver"] != "manual-management" {
		t.Fatalf("the host is %v", host.Values)
	}
	if node := s.Node(id); node["power_interface"] != "agent" || node["network_interface"] != "noop" {
		t.Errorf("the node has the interfaces %v and %v", node["power_interface"], node["network_interface"])
	}
	site.WantVerbs(t, s, id, "manage", "provide")
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	w.Configure(config(agent, acctest.Image("a"), forget, `restart_triggers = { a = "0" }`))
	w.Must(acctest.Apply()...)
	if state := s.Node(id)["provision_state"]; state != "active" {
		t.Fatalf("the node is %v", state)
	}
	acctest.NoChanges(t, w)
	wantNoPower(t, s)

	for name, deployment := range map[string][]string{
		"cannot be rebuilt or restarted": {acctest.Image("b"), forget},
		"cannot be restarted":            {acctest.Image("a"), forget, `restart_triggers = { a = "1" }`},
		"could not be undeployed":        {acctest.Image("a")},
		"cannot be switched":             {acctest.Image("a"), forget, `power_state = "off"`},
	} {
		w.Configure(config(agent, deployment...))
		acctest.Fails(t, w, []string{"plan"}, "Machine without BMC credentials", name, "bmc with address, username and password_wo")
	}

	w.Configure(config(agent, `live_iso = { url = "`+acctest.Images+`live.iso" }`, forget))
	acctest.Fails(t, w, []string{"plan"}, "Forgotten machine cannot be replaced", "bmc with address, username and password_wo",
		`Then apply on_destroy = "undeploy"`)

	s.Fake.ResetRequests()
	withBMC := []string{bmc.Block("ipmi://192.0.2.81", `username = "root"`, `password = "calvin"`), acctest.Target("available")}
	w.Configure(config(withBMC, acctest.Image("a"), forget))
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, id)
	if node := s.Node(id); node["driver"] != "ipmi" || node["power_interface"] != "ipmitool" || node["provision_state"] != "active" ||
		node["maintenance"] != false {
		t.Errorf("the node has driver %v and power interface %v, is %v, in maintenance %v", node["driver"], node["power_interface"],
			node["provision_state"], node["maintenance"])
	}
	acctest.NoChanges(t, w)

	w.Configure(config(withBMC, acctest.Image("a")))
	w.Must(acctest.Apply()...)
	w.Configure(s.Provider())
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, id, "deleted")
	if s.Node(id) != nil {
		t.Error("the node is left")
	}
}

// Credentials that come to an available machine change its settings and nothing else.
func TestFakeHostByAgent_credentialsForAvailableMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{FastTrack: true})
	id := s.Fake.Discover(s.Machine(1))
	config := func(settings ...string) string {
		return s.Provider() + imported(id) + acctest.HostBlock(s.Name("h"), append([]string{acctest.Target("available")}, settings...)...)
	}
	w := acctest.NewWorkspace(t, config(byAgent))
	w.Must(acctest.Apply()...)
	s.Fake.ResetRequests()
	w.Configure(config(bmc.Block("ipmi://192.0.2.82", `username = "root"`, `password = "calvin"`)))
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, id)
	acctest.NoChanges(t, w)
}

// While the agent does not answer, or fast track is off, the apply fails and says what is needed. The next one goes on.
func TestFakeHostByAgent_silentAgentIsExplained(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{FastTrack: true})
	id := s.Fake.Discover(s.Machine(1))
	s.Fake.RunAgent(id, false)
	w := acctest.NewWorkspace(t, s.Provider()+imported(id)+acctest.HostBlock(s.Name("h"), byAgent, acctest.Target("manageable")))
	acctest.Fails(t, w, acctest.Apply(), "Agent seems offline", "boots Ironic's ramdisk", "[deploy]fast_track",
		"a bmc with credentials in place of power_control")
	s.Fake.RunAgent(id, true)
	w.Must(acctest.Apply()...)
	if state := s.Node(id)["provision_state"]; state != "manageable" {
		t.Errorf("the node is %v", state)
	}
	acctest.NoChanges(t, w)

	slow := site.StartFake(t, nil)
	other := slow.Fake.Discover(slow.Machine(2))
	w = acctest.NewWorkspace(t, slow.Provider()+imported(other)+acctest.HostBlock(slow.Name("h"), byAgent, acctest.Target("manageable")))
	acctest.Fails(t, w, acctest.Apply(), "Fast track mode must be enabled")
}

// In one apply, where the first plan cannot know the node, Terraform plans the deployment again, and that refuses it before it
// reserves the node.
func TestFakeHostByAgent_deploymentInSameApplyRefusesBeforeItReserves(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{FastTrack: true})
	s.Fake.Discover(s.Machine(1))
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), byAgent, acctest.Target("available"),
		fmt.Sprintf("ports = { %q = {} }", s.MAC(1)))+
		acctest.Deployment(acctest.HostAddress+".id", acctest.Image("a")))
	acctest.Fails(t, w, acctest.Apply(), "Machine without BMC credentials", `Set on_destroy = "forget" to deploy it without credentials`)
	if node := s.Node(s.Name("h")); node["provision_state"] != "available" || node["instance_uuid"] != nil {
		t.Errorf("the node is %v, reserved by %v", node["provision_state"], node["instance_uuid"])
	}
}

// What contradicts power_control is refused by validate.
func TestFakeHostByAgent_contradictionsAreRefused(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for settings, want := range map[string]string{
		`power_state = "off"`:                          "can neither switch the machine on nor off",
		`driver = "ipmi"`:                              "The driver follows from power_control, and is manual-management",
		bmc.Block("ipmi://192.0.2.1"):                  "cannot be specified when",
		`hardware_interfaces = { network = "flat" }`:   "needs the network interface noop",
		`hardware_interfaces = { power = "ipmitool" }`: "needs the power interface agent",
	} {
		acctest.Fails(t, acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), byAgent, settings)), []string{"plan"}, want)
	}
}

// A host with the agent's settings is enrolled on every Ironic that has the driver. Without fast track, the verification says so.
func TestAccHostByAgent_needsFastTrack(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(target string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), byAgent, acctest.Target(target))
	}
	w := acctest.NewWorkspace(t, config("enroll"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	if node := s.Node(s.Name("h")); node["driver"] != "manual-management" || node["power_interface"] != "agent" ||
		node["network_interface"] != "noop" {
		t.Errorf("the node has driver %v and the interfaces %v and %v", node["driver"], node["power_interface"], node["network_interface"])
	}
	acctest.NoChanges(t, w)
	w.Configure(config("manageable"))
	acctest.Fails(t, w, acctest.Apply(), "Fast track mode must be enabled", "[deploy]fast_track")
}
