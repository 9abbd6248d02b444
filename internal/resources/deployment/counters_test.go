package deployment_test

import (
	"fmt"
	"testing"

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
		{settings: []string{acctest.Image("v2"), drive("a\n")}, rebuilds: 1, between: func() {
			s.Patch(node, "add", "/name", s.Name("renamed"))
		}},
		{settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "10" }`}},
		{settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "11" }`}, rebuilds: 1},
		{settings: []string{acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `on_change = "ignore"`}, rebuilds: 1},
		{settings: []string{
			acctest.Image("v3"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `restart_triggers = { kernel = "0" }`,
			`on_change = "ignore"`,
		}},
		{settings: []string{
			acctest.Image("v3"), drive("a\n"), `rebuild_triggers = { month = "12" }`, `restart_triggers = { kernel = "1" }`,
			`on_change = "ignore"`,
		}, restarts: 1},
		{
			settings: []string{
				acctest.Image("v2"), drive("a\n"), `rebuild_triggers = { month = "12" }`,
				`restart_triggers = { kernel = "2" }`,
			}, restarts: 1,
			between: func() { power(s, node, "power off") },
		},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `restart_triggers = { kernel = "3" }`}, rebuilds: 1},
		{settings: []string{acctest.Image("v3"), drive("a\n"), `restart_triggers = { kernel = "4" }`, `power_state = "off"`}},
		{settings: []string{
			acctest.Image("v3"), drive("a\n"), `restart_triggers = { kernel = "4" }`, `power_state = "off"`,
			`max_attempts = 2`,
		}},
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

// Whether a value that is not known yet changes the content decides the apply: the plan says unknown.
func TestAccDeployment_unknownContentIsUnknownInCounters(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(replaced, drive string) string {
		return s.Provider() + fmt.Sprintf("resource \"terraform_data\" \"x\" {\n  input = %q\n  triggers_replace = %q\n}\n",
			drive, replaced) +
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
