package deployment_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_gracefulPowerOff(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config(`power_state = "on"`))
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	w.Configure(config(`power_state = "on"`, `power_off_mode = "graceful"`))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
	w.Configure(config(`power_state = "off"`, `power_off_mode = "graceful"`))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Power was cut")
	s.Await(node, "power_state", "power off")
	acctest.NoChanges(t, w)
	if s.Fake == nil {
		return
	}
	if sent := powerTargets(s); sent != `{"target":"soft power off","timeout":180}` {
		t.Errorf("sent %s", sent)
	}
}

// powerTargets returns the requests for power changes that the fake has got.
func powerTargets(s *site.Site) string {
	var sent []string
	for _, r := range s.Fake.Requests() {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/power") {
			sent = append(sent, r.Body)
		}
	}
	return strings.Join(sent, " ")
}

// A machine that Ironic never switches off is neither deployed to be switched off, because the failed deployment would be tainted, nor
// switched off later. The plan says so.
func TestAccDeployment_neverOffIsRefusedByThePlan(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 95)
	node := site.AddNode(t, s, "n1", nil)
	never := func(value bool) { s.PatchAt("1.95", node, "/disable_power_off", value) }
	config := func(power string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), "power_state = "+acctest.Quoted(power))
	}
	refused := []string{
		"disable_power_off is set on it",
		`Remove power_state = "off", or set disable_power_off = false on its metal_host first`, "Power-off is disabled",
	}
	never(true)
	w := acctest.NewWorkspace(t, config("off"))
	acctest.Fails(t, w, []string{"plan"}, refused...)

	w.Configure(config("on"))
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	w.Configure(config("off"))
	acctest.Fails(t, w, []string{"plan"}, refused...)
	never(false)
	w.Must(acctest.Apply()...)
	never(true) // it is off already
	acctest.NoChanges(t, w)
}

// The plan of a deployment goes by what the plan of its host makes of disable_power_off.
func TestAccDeployment_neverOffFollowsThePlannedHost(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 95)
	config := func(never bool, power string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, `resource_class = "baremetal"`,
			acctest.Target("available"), fmt.Sprintf("disable_power_off = %t", never)) +
			acctest.Deployment(acctest.HostAddress+".id", acctest.Image("v1"), "power_state = "+acctest.Quoted(power))
	}
	w := acctest.NewWorkspace(t, config(false, "on"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	w.Configure(config(true, "off"))
	acctest.Fails(t, w, []string{"plan"}, "disable_power_off is set on it")
	w.Configure(config(true, "on"))
	w.Must(acctest.Apply()...)
	w.Configure(config(false, "off"))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

// A restart shuts the machine down as power_off_mode says, and the first restart_triggers restart nothing.
func TestAccDeployment_gracefulRestart(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"), `power_state = "on"`,
			`power_off_mode = "graceful"`)...)
	}
	w := acctest.NewWorkspace(t, config())
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	began := s.Node(node)["driver_internal_info"].(map[string]any)["last_power_state_change"]
	if s.Fake != nil {
		s.Fake.ResetRequests()
	}
	w.Configure(config(`restart_triggers = { kernel = "1" }`, `rebuild_triggers = { month = "1" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
	acctest.NeverMention(t, w.Must("apply", "saved"), "Machine is restarted", "Rebuild wipes")
	acctest.NoChanges(t, w)
	now := s.Node(node)["driver_internal_info"].(map[string]any)["last_power_state_change"]
	if now != began {
		t.Errorf("the power was changed at %v, and before at %v", now, began)
	}
	w.Configure(config(`restart_triggers = { kernel = "2" }`, `rebuild_triggers = { month = "1" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	acctest.Mention(t, w.Must("show", "saved")+w.Must("plan"), "If the machine stays on for 3 minutes, its power is cut")
	acctest.NeverMention(t, w.Must("apply", "saved"), "Power was cut")
	s.Await(node, "power_state", "power on")
	acctest.NoChanges(t, w)
	if s.Fake == nil {
		return
	}
	if sent := powerTargets(s); sent != `{"target":"soft power off","timeout":180} {"target":"power on"}` {
		t.Errorf("sent %s", sent)
	}
}

// An operating system that ignores the request loses its power with graceful. With soft, the apply fails, and the next one restarts the
// machine.
func TestFakeDeployment_restartOfAMachineThatStaysOn(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{NoSoftPower: true})
	node := site.AddNode(t, s, "n1", nil)
	config := func(kernel, mode string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "on"`,
			"restart_triggers = { kernel = "+acctest.Quoted(kernel)+" }", "power_off_mode = "+acctest.Quoted(mode))
	}
	w := acctest.NewWorkspace(t, config("1", "soft"))
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	cycles := s.Fake.PowerCycles(node)
	w.Configure(config("2", "soft"))
	acctest.Fails(t, w, acctest.Apply(), "Could not restart node", "cannot ask an operating system to shut down",
		"Set power_off_mode to graceful or hard")
	w.Configure(config("2", "graceful"))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	acctest.Mention(t, w.Must("apply", "saved"), "Power was cut", "lost its power without a shutdown: the driver fake-hardware cannot ask")
	acctest.NoChanges(t, w)
	if got := s.Fake.PowerCycles(node) - cycles; got != 1 {
		t.Errorf("the machine was started %d times", got)
	}
}

// The first rebuild trigger deploys nothing, and what the provider knows of the machine stays: a change of the image by others still shows.
func TestFakeDeployment_firstTriggerKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config())
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	w.Configure(config(`rebuild_triggers = { a = "1" }`))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	acctest.RunImage(s, node, "v9")
	acctest.Mention(t, w.Must("plan"), "Rebuild wipes the root disk", "v9.qcow2")
	acctest.RunImage(s, node, "v1")
	acctest.NoChanges(t, w)
	w.Configure(config())
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, node, "active")
}
