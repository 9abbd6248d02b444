package deploytemplate_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const (
	address = "metal_deploy_template.t"
	clock   = `{ interface = "management", step = "set_clock", priority = 40 }`
	reset   = `{ interface = "bios", step = "factory_reset", args = jsonencode({ password = "pass-phrase", mode = "full" }), priority = 60 }`
)

// template returns the HCL of the template "t" of a trait.
func template(name string, steps ...string) string {
	return fmt.Sprintf("resource \"metal_deploy_template\" \"t\" {\n  name = %q\n  steps = [%s]\n}\n", name, strings.Join(steps, ", "))
}

// stepsOf returns the steps that Ironic has, such as "bios.factory_reset 60".
func stepsOf(s *site.Site, ref string) (steps []string) {
	list, _ := s.Must(http.MethodGet, "deploy_templates/"+ref, nil)["steps"].([]any)
	for _, item := range list {
		step, _ := item.(map[string]any)
		steps = append(steps, fmt.Sprintf("%v.%v %v", step["interface"], step["step"], step["priority"]))
	}
	return steps
}

func TestAccDeployTemplate_changesInPlace(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	first, second := s.Trait("RAID1"), s.Trait("RAID5")
	w := acctest.NewWorkspace(t, s.Provider()+template(first, reset))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	id := site.Text(acctest.InState(t, w, address).Values["id"])
	w.Configure(s.Provider() + template(second, clock, reset))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	if got := fmt.Sprint(stepsOf(s, id)); !strings.Contains(got, "bios.factory_reset 60") ||
		!strings.Contains(got, "management.set_clock 40") {
		t.Errorf("Ironic has the steps %s", got)
	}
	if name := s.Must(http.MethodGet, "deploy_templates/"+id, nil)["name"]; name != second {
		t.Errorf("the name is %v, want %s", name, second)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployTemplate_correctsWhatOthersChange(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Trait("RAID1")
	w := acctest.NewWorkspace(t, s.Provider()+template(name, reset, clock))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodPatch, "deploy_templates/"+name, []any{map[string]any{"op": "add", "path": "/steps", "value": []any{
		map[string]any{
			"interface": "bios", "step": "factory_reset", "args": map[string]any{"password": "other", "mode": "quick"},
			"priority": 60,
		},
	}}})
	output, _ := w.Plan()
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy", "set_clock", "quick")
	acctest.NeverMention(t, output, "******")
	w.Must("apply", "-auto-approve")
	if got := stepsOf(s, name); len(got) != 2 {
		t.Errorf("Ironic has the steps %v, want both", got)
	}
	s.Must(http.MethodDelete, "deploy_templates/"+name, nil)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 0 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployTemplate_importsByNameAndUUID(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Trait("RAID1")
	made := s.Must(http.MethodPost, "deploy_templates", map[string]any{"name": name, "steps": []any{
		map[string]any{"interface": "bios", "step": "factory_reset", "args": map[string]any{"mode": "full"}, "priority": 60},
		map[string]any{"interface": "management", "step": "set_clock", "args": map[string]any{}, "priority": 40},
	}})
	config := s.Provider() + template(name, strings.Replace(reset, `password = "pass-phrase", `, "", 1), clock)
	for _, ref := range []string{name, site.Text(made["uuid"])} {
		w := acctest.NewWorkspace(t, config)
		w.Must("import", address, ref)
		acctest.NoChanges(t, w)
		if ref != name {
			w.Must("destroy", "-auto-approve")
		}
	}
}

func TestAccDeployTemplate_deploymentWithItsTraitRunsIt(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Trait("STEPLESS")
	node := site.AddNode(t, s, "n1", nil)
	site.AddTrait(s, node, name)
	steps := template(name, `{ interface = "deploy", step = "deploy", priority = 0 }`) // leaves no step, so that the deployment fails
	config := func(traits string) string {
		return s.Provider() + steps + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), traits)
	}
	w := acctest.NewWorkspace(t, config("traits = [metal_deploy_template.t.name]"))
	acctest.Fails(t, w, acctest.Apply(), acctest.LastErrorOfFailingStep)
	w.Configure(config(""))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// loseState removes the state, as if a run had been killed before it was saved.
func loseState(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	if err := os.Remove(filepath.Join(w.Dir, "terraform.tfstate")); err != nil {
		t.Fatal(err)
	}
}

func TestAccDeployTemplate_nextRunFinishesWhatKilledRunBegan(t *testing.T) {
	t.Parallel()
	for title, unfinished := range map[string]bool{"right after its creation": true, "finished, but not saved": false} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			name := s.Trait("RAID1")
			w := acctest.NewWorkspace(t, s.Provider()+template(name, reset, clock))
			w.Must("apply", "-auto-approve")
			id := site.Text(acctest.InState(t, w, address).Values["id"])
			loseState(t, w)
			if unfinished {
				site.UnfinishCreation(s, "deploy_templates/"+id)
			}
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "Interrupted creation is continued", "deploy template "+name, "1 added")
			if again := site.Text(acctest.InState(t, w, address).Values["id"]); again != id {
				t.Errorf("the apply has made another template, %s", again)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccDeployTemplate_neverTakesOverAnotherOne(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Trait("RAID1")
	s.Must(http.MethodPost, "deploy_templates", map[string]any{"name": name, "steps": []any{
		map[string]any{"interface": "management", "step": "set_clock", "args": map[string]any{}, "priority": 40},
	}})
	w := acctest.NewWorkspace(t, s.Provider()+template(name, clock)) // the same, but no run has marked it
	acctest.Fails(t, w, acctest.Apply(), "A deploy template with name "+name+" already exists",
		"terraform import <address of the metal_deploy_template> "+name)
	s.Must(http.MethodDelete, "deploy_templates/"+name, nil)
	w.Must("apply", "-auto-approve")
	loseState(t, w)
	w.Configure(s.Provider() + template(name, clock, reset)) // marked, but different
	acctest.Fails(t, w, acctest.Apply(), "already exists")
	s.Must(http.MethodDelete, "deploy_templates/"+name, nil)
}

func TestAccDeployTemplate_planRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Trait("RAID1")
	for title, step := range map[string]struct {
		config string
		texts  []string
	}{
		"too old a server": {
			s.Provider(`microversion = "1.54"`) + template(name, clock),
			[]string{"metal_deploy_template needs API 1.55", "1.54 is in use"},
		},
		"firmware": {
			s.Provider(`microversion = "1.85"`) + template(name, strings.Replace(clock, "management", "firmware", 1)),
			[]string{"steps[0].interface needs API 1.86"},
		},
		"a step twice": {s.Provider() + template(name, clock, clock), []string{"Step management.set_clock is also element 0"}},
		"arguments as a list": {
			s.Provider() + template(name, strings.Replace(clock, "priority", "args = jsonencode([]), priority", 1)),
			[]string{"The arguments of a step must be a JSON object"},
		},
		"an interface": {s.Provider() + template(name, strings.Replace(clock, "management", "dvd", 1)), []string{"must be one of"}},
		"a name":       {s.Provider() + template("raid1", clock), []string{"CUSTOM_RAID1"}},
		"no steps":     {s.Provider() + template(name), []string{"at least 1"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			acctest.Fails(t, acctest.NewWorkspace(t, step.config), []string{"plan"}, step.texts...)
		})
	}
}

func TestAccDeployTemplate_planWarnsOfTraitThatNoNodeHas(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Trait("RAID1")
	site.AddTrait(s, site.AddNode(t, s, "n1", nil), name)
	w := acctest.NewWorkspace(t, s.Provider()+template(name+"X", clock))
	acctest.Mention(t, w.Must("plan"), "No node has this trait", "No node has the trait "+name+"X; similar: "+name, "no effect until")
	w.Configure(s.Provider() + template(name, clock))
	acctest.NeverMention(t, w.Must("plan"), "No node has this trait")
}

func TestAccDeployTemplate_olderAPIForgetsNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+template(s.Trait("RAID1"), clock))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider(`microversion = "1.54"`) + template(s.Trait("RAID1"), clock))
	acctest.Fails(t, w, []string{"plan"}, "deploy template needs API 1.55")
	w.Configure(s.Provider() + template(s.Trait("RAID1"), clock))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
