package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantRaised fails a test unless a change raises rebuilds and restarts by these numbers. It reads the JSON of a saved plan as a
// policy check does.
func wantRaised(t *testing.T, change acctest.Change, rebuilds, restarts float64) {
	t.Helper()
	for name, want := range map[string]float64{"rebuilds": rebuilds, "restarts": restarts} {
		before, _ := change.Before[name].(float64)
		after, known := change.After[name].(float64)
		if !known || after-before != want || change.Unknown[name] != nil {
			t.Errorf("%s goes from %v to %v (%v), want %v more", name, change.Before[name], change.After[name], change.Unknown[name], want)
		}
	}
}

// wantInState fails a test unless the state of the deployment has these counters.
func wantInState(t *testing.T, w *acctest.Workspace, rebuilds, restarts int) {
	t.Helper()
	values := acctest.Deployed(t, w).Values
	if fmt.Sprint(values["rebuilds"], values["restarts"]) != fmt.Sprint(rebuilds, restarts) {
		t.Errorf("in state are rebuilds %v and restarts %v, want %d and %d", values["rebuilds"], values["restarts"], rebuilds, restarts)
	}
}

// power switches a node as another user.
func power(s *site.Site, node, target string) {
	s.Must("PUT", "nodes/"+node+"/states/power", map[string]any{"target": target})
	s.Await(node, "power_state", target)
}

func TestAccDeployment_savedPlanShowsEveryWipeAndRestart(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, `timeouts = { update = "5m" }`)...)
	}
	w := acctest.NewWorkspace(t, config(acctest.Image("v1")))
	if created := w.Save()[acctest.DeploymentAddress]; fmt.Sprint(created.After["rebuilds"], created.After["restarts"]) != "0 0" {
		t.Errorf("a new deployment has %v", created.After)
	}
	w.Must("apply", "saved")
	verbs, rebuilds, restarts := []string{"active"}, 0, 0
	drive := func(data string) string { return fmt.Sprintf("config_drive = { user_data = %q }", data) }
	for _, step := range []struct {
		settings           []string
		rebuilds, restarts float64
		between            func() // what others do to the node between plan and apply
	}{
		{settings: []string{acctest.Image("v2")}, rebuilds: 1, between: func() { power(s, node, "power off") }},
		{settings: []string{acctest.Image("v2"), drive("a")}, rebuilds: 1},
		{settings: []string{acctest.Image("v2"), drive("a\n")}, rebuilds: 1, between: func() { s.Patch(node, "add", "/name", s.Name("renamed")) }},
		{settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "10" }`}},
		{settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "11" }`}, rebuilds: 1},
		{settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `on_change = "ignore"`}, rebuilds: 1},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `restart_triggers = { kernel = "0" }`, `on_change = "ignore"`}},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `restart_triggers = { kernel = "1" }`, `on_change = "ignore"`}, restarts: 1},
		{
			settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `restart_triggers = { kernel = "2" }`}, restarts: 1,
			between: func() { power(s, node, "power off") },
		},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `restart_triggers = { kernel = "3" }`}, rebuilds: 1},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `restart_triggers = { kernel = "4" }`, `power_state = "off"`}},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `restart_triggers = { kernel = "4" }`, `power_state = "off"`, `max_attempts = 2`}},
	} {
		w.Configure(config(step.settings...))
		wantRaised(t, w.Save()[acctest.DeploymentAddress], step.rebuilds, step.restarts)
		if step.between != nil {
			step.between()
		}
		w.Must("apply", "saved")
		if step.rebuilds > 0 {
			verbs = append(verbs, "rebuild")
		}
		rebuilds, restarts = rebuilds+int(step.rebuilds), restarts+int(step.restarts)
		wantInState(t, w, rebuilds, restarts)
		acctest.NoChanges(t, w)
	}
	site.WantVerbs(t, s, node, verbs...)
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_restartTriggerRestartsOnce(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(kernel string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `restart_triggers = { kernel = "`+kernel+`" }`)
	}
	w := acctest.NewWorkspace(t, config("1"))
	w.Must("apply", "-auto-approve")
	before := s.Fake.PowerCycles(node)
	w.Configure(config("2"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Machine is restarted", "Node "+s.Name("n1")+" ("+node+") is off, and is switched on: restart_triggers changes")
	if got := s.Fake.PowerCycles(node) - before; got != 1 {
		t.Errorf("the machine was started %d times", got)
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
}

// An interrupted apply has asked for the restart. The next one must not ask for it again.
func TestFakeDeployment_interruptedRestartHappensOnce(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(kernel string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `restart_triggers = { kernel = "`+kernel+`" }`)
	}
	w := acctest.NewWorkspace(t, config("1"))
	w.Must("apply", "-auto-approve")
	before := s.Fake.PowerCycles(node)
	w.Configure(config("2"))
	release := s.Hold("power on")
	running := w.Start("apply", "-auto-approve")
	site.Until(t, "the power changes", func() bool { return s.Node(node)["target_power_state"] != nil })
	acctest.Mention(t, acctest.Interrupt(t, running), "Interrupted: restart node "+s.Name("n1"))
	release()
	w.Must("apply", "-auto-approve")
	site.Until(t, "the power change ends", func() bool { return s.Node(node)["target_power_state"] == nil })
	if got := s.Fake.PowerCycles(node) - before; got != 1 {
		t.Errorf("the machine was started %d times", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A repeat after a failure writes the disk again: the plan shows it, and what failed is not counted.
func TestAccDeployment_repeatAfterFailureIsCounted(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	w.Configure(config(acctest.FailingStep))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	acctest.Fails(t, w, []string{"apply", "saved"}, `is in state "deploy failed"`)
	wantInState(t, w, 0, 0)
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0) // unchanged configuration
	w.Configure(config())
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	wantInState(t, w, 1, 0)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A node that others have undeployed, and that is reserved for the deployment again, is deployed again.
func TestAccDeployment_deployingAgainIsCounted(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	instance := s.Node(node)["instance_uuid"]
	s.Verb(node, "deleted", "available")
	s.Patch(node, "add", "/instance_uuid", instance)
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	wantInState(t, w, 1, 0)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Waiting for a deployment that a killed run has begun writes nothing, and neither does recording one that has ended by then. The
// saved plan stays right when the deployment ends between plan and apply.
func TestAccDeployment_waitingIsNotCounted(t *testing.T) {
	t.Parallel()
	for name, atRest := range map[string]bool{"still deploying": false, "deployed by then": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartSlow(t)
			node := site.AddNode(t, s, "n1", nil)
			w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
			w.Must("apply", "-auto-approve")
			w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v2")))
			release := s.Hold(site.BusyDeploying()...)
			running := w.Start("apply", "-auto-approve")
			site.AwaitState(t, s, node, site.BusyDeploying()...)
			acctest.Kill(t, s, running)
			if atRest {
				release()
				site.AwaitState(t, s, node, "active")
			}
			wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
			release()
			site.AwaitState(t, s, node, "active")
			w.Must("apply", "saved")
			wantInState(t, w, 0, 0)
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, node, "active", "rebuild")
			w.Must("destroy", "-auto-approve")
		})
	}
}

// TestAccDeployment_interruptedInQueueIsNotCounted stops a run while one of two machines waits for the other's slot. On neither of them is
// anything written a second time.
func TestAccDeployment_interruptedInQueueIsNotCounted(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node, other := site.AddNode(t, s, "n1", nil), site.AddNode(t, s, "n2", nil)
	config := func(image string) string {
		deployment := acctest.Deployment("each.key", acctest.Image(image))
		return s.Provider("provisioning_limit = { max_concurrent = 1 }") + strings.Replace(deployment, "{\n", fmt.Sprintf("{\n  for_each = toset([%q, %q])\n", node, other), 1)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	busy := func() bool {
		return site.IsBusy(s, node, site.BusyDeploying()) || site.IsBusy(s, other, site.BusyDeploying())
	}
	site.Until(t, "one machine to be deployed, and the other one to be reserved", func() bool {
		return busy() && s.Node(node)["instance_uuid"] != nil && s.Node(other)["instance_uuid"] != nil
	})
	acctest.Interrupt(t, running)
	for _, image := range []string{"v1", "v2"} { // what is configured now does not matter: nothing was written
		w.Configure(config(image))
		for address, change := range w.Save() {
			if image == "v1" || site.Text(change.Before["provision_state"]) == "available" {
				wantRaised(t, change, 0, 0)
			}
			if t.Failed() {
				t.Fatal(address)
			}
		}
	}
	w.Configure(config("v1"))
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	acctest.NoChanges(t, w)
	for _, machine := range []string{node, other} {
		site.WantVerbs(t, s, machine, "active")
	}
	w.Must("destroy", "-auto-approve")
}

// Whether a value that is not known yet changes the content decides the apply: the plan says unknown.
func TestAccDeployment_unknownContentIsUnknownInCounters(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(replaced, drive string) string {
		return s.Provider() + fmt.Sprintf("resource \"terraform_data\" \"x\" {\n  input = %q\n  triggers_replace = %q\n}\n", drive, replaced) +
			acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `config_drive = { user_data = terraform_data.x.output }`)
	}
	w := acctest.NewWorkspace(t, config("1", "a"))
	w.Must("apply", "-auto-approve")
	for _, step := range []struct {
		replaced, drive string
		rebuilds        int
	}{{"2", "a", 0}, {"3", "b", 1}} {
		w.Configure(config(step.replaced, step.drive))
		if change := w.Save()[acctest.DeploymentAddress]; change.Unknown["rebuilds"] != true || change.After["rebuilds"] != nil {
			t.Errorf("%s: rebuilds is %v, want unknown", step.drive, change.After["rebuilds"])
		}
		w.Must("apply", "saved")
		wantInState(t, w, step.rebuilds, 0)
		acctest.NoChanges(t, w)
	}
	site.WantVerbs(t, s, node, "active", "rebuild")
	w.Must("destroy", "-auto-approve")
}

func TestFakeLiveISO_savedPlanShowsRestarts(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", bootsISOs())
	config := func(image, own string, settings ...string) string {
		live := liveISO("http://images.invalid/"+image+".iso", `shared_content = { env = "`+image+`" }`, `host_content = { nmstate = "`+own+`" }`, `quiet_period = "0s"`)
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, live)...)
	}
	w := acctest.NewWorkspace(t, config("a", "1"))
	w.Must("apply", "-auto-approve")
	cycles, restarts := s.Fake.PowerCycles(node), 0
	for _, step := range []struct {
		config string
		raised float64
	}{
		{config("b", "1"), 0}, // concerns other machines only
		{config("b", "2"), 0}, // is younger than its image
		{config("c", "2"), 1},
		{config("c", "2", `restart_triggers = { a = "0" }`), 0}, // the first value
		{config("c", "2", `restart_triggers = { a = "1" }`), 1},
		{config("d", "3", `restart_triggers = { a = "2" }`), 1},
		{config("d", "3", `restart_triggers = { a = "2" }`, `rebuild_triggers = { a = "0" }`), 0},
		{config("d", "3", `restart_triggers = { a = "2" }`, `rebuild_triggers = { a = "1" }`), 1},
		{config("d", "3", `rebuild_triggers = { a = "1" }`), 0}, // without the other
		{config("d", "3", `rebuild_triggers = { a = "1" }`, `capabilities = { boot_mode = "uefi" }`), 1},
	} {
		w.Configure(step.config)
		wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, step.raised)
		s.Patch(node, "add", "/description", "changed by others")
		w.Must("apply", "saved")
		restarts += int(step.raised)
		wantInState(t, w, 0, restarts)
		if got := s.Fake.PowerCycles(node) - cycles; got != restarts {
			t.Errorf("the machine was started %d times, want %d", got, restarts)
		}
		acctest.NoChanges(t, w)
	}
	w.Must("destroy", "-auto-approve")
}

// A live ISO restart that an earlier run has left behind is counted when it is taken up again.
func TestFakeLiveISO_repeatAfterFailureIsCounted(t *testing.T) {
	t.Parallel()
	failing := make(chan bool, 1)
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.82", Fail: func(_ fakeironic.Node, verb string) string {
		if (verb == "active" || verb == "rebuild") && len(failing) > 0 {
			return "the switch port was down"
		}
		return ""
	}})
	node := site.AddNode(t, s, "n", bootsISOs())
	config := func(image string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO("http://images.invalid/"+image+".iso", `host_content = { a = "`+image+`" }`, `quiet_period = "0s"`))
	}
	w := acctest.NewWorkspace(t, config("a"))
	w.Must("apply", "-auto-approve")
	failing <- true
	w.Configure(config("b"))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	if output, code := w.Run("apply", "saved"); code == 0 || !strings.Contains(output, "the switch port was down") {
		t.Fatalf("the restart worked, or failed otherwise:\n%s", output)
	}
	wantInState(t, w, 0, 0)
	<-failing
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	w.Must("apply", "saved")
	wantInState(t, w, 0, 1)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
