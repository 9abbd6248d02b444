package runbook_test

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
	latest  = "1.112"
	address = "metal_runbook.b"
	clock   = `{ interface = "management", step = "set_bmc_clock", args = jsonencode({ token = "t0ken", zone = "UTC" }) }`
	reset   = `{ interface = "bios", step = "factory_reset" }`
)

// start returns an Ironic that has runbooks with traits.
func start(t *testing.T) *site.Site {
	t.Helper()
	s := site.Start(t, nil)
	s.SkipBefore(t, 112)
	return s
}

// runbook returns the HCL of the runbook "b" with further settings.
func runbook(name string, steps []string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_runbook\" \"b\" {\n  name = %q\n  steps = [%s]\n  %s\n}\n", name, strings.Join(steps, ", "),
		strings.Join(settings, "\n  "))
}

func traits(names ...string) string { return `traits = ["` + strings.Join(names, `", "`) + `"]` }

// read returns a runbook of Ironic.
func read(t *testing.T, s *site.Site, ref string) map[string]any {
	t.Helper()
	status, answer := s.CallAt(latest, http.MethodGet, "runbooks/"+ref, nil)
	if status != http.StatusOK {
		t.Fatalf("runbook %s: %d", ref, status)
	}
	return answer
}

// change edits a runbook as another client.
func change(t *testing.T, s *site.Site, ref, path string, value any) {
	t.Helper()
	if status, answer := s.CallAt(latest, http.MethodPatch, "runbooks/"+ref,
		[]any{map[string]any{"op": "add", "path": path, "value": value}}); status != http.StatusOK {
		t.Fatalf("runbook %s: %d %v", ref, status, answer)
	}
}

func TestAccRunbook_changesInPlace(t *testing.T) {
	t.Parallel()
	s := start(t)
	name, trait := s.Name("bmc"), s.Trait("BMC")
	w := acctest.NewWorkspace(t, s.Provider()+runbook(name, []string{clock, reset}, traits(trait), `description = "Clock"`, "public = true",
		"disable_ramdisk = true"))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	made := read(t, s, name)
	for key, want := range map[string]any{"description": "Clock", "public": true, "disable_ramdisk": true, "traits": []any{trait}} {
		if fmt.Sprint(made[key]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", key, made[key], want)
		}
	}
	w.Configure(s.Provider() + runbook(name+"2", []string{reset, clock}, traits(trait, s.Trait("OTHER")), `description = "Clock and BIOS"`))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	after := read(t, s, name+"2")
	for key, want := range map[string]any{
		"uuid": made["uuid"], "description": "Clock and BIOS", "public": false,
		"disable_ramdisk": false,
	} {
		if after[key] != want {
			t.Errorf("%s is %v, want %v", key, after[key], want)
		}
	}
	if list, _ := after["traits"].([]any); len(list) != 2 {
		t.Errorf("the traits are %v, want two", list)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccRunbook_correctsWhatOthersChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := s.Name("bmc")
	w := acctest.NewWorkspace(t, s.Provider()+runbook(name, []string{clock, reset}, traits(s.Trait("BMC")), `description = "Clock"`))
	w.Must("apply", "-auto-approve")
	s.CallAt(latest, http.MethodPut, "runbooks/"+name+"/traits", map[string]any{"traits": []any{}})
	change(t, s, name, "/description", "changed")
	change(t, s, name, "/public", true)
	change(t, s, name, "/steps", []any{
		map[string]any{"interface": "bios", "step": "factory_reset", "args": map[string]any{}, "order": 1},
		map[string]any{"interface": "management", "step": "set_bmc_clock", "args": map[string]any{"token": "x", "zone": "UTC"}, "order": 2},
	})
	output, _ := w.Plan()
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy", `"changed" -> "Clock"`, "true -> false", s.Trait("BMC"), "~ steps")
	acctest.NeverMention(t, output, "******")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccRunbook_removedAttributeIsNotManaged(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := s.Name("bmc")
	w := acctest.NewWorkspace(t, s.Provider()+runbook(name, []string{clock}, traits(s.Trait("BMC")), `description = "Clock"`))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + runbook(name, []string{clock}))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	now := read(t, s, name)
	if list, _ := now["traits"].([]any); len(list) != 1 || now["description"] != "Clock" {
		t.Errorf("the apply has changed what is not managed any more: %v", now)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccRunbook_importsByNameAndUUID(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := s.Name("bmc")
	w := acctest.NewWorkspace(t, s.Provider()+runbook(name, []string{reset}, traits(s.Trait("BMC")), `description = "BIOS"`))
	w.Must("apply", "-auto-approve")
	for _, ref := range []string{name, site.Text(read(t, s, name)["uuid"])} {
		w.Must("state", "rm", address)
		w.Must("import", address, ref)
		acctest.NoChanges(t, w)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccRunbook_nextRunFinishesWhatKilledRunBegan(t *testing.T) {
	t.Parallel()
	for title, unfinished := range map[string]bool{"before it had traits": true, "finished, but not saved": false} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			name := s.Name("bmc")
			w := acctest.NewWorkspace(t, s.Provider()+runbook(name, []string{clock}, traits(s.Trait("BMC")), `description = "Clock"`))
			w.Must("apply", "-auto-approve")
			id := read(t, s, name)["uuid"]
			if err := os.Remove(filepath.Join(w.Dir, "terraform.tfstate")); err != nil {
				t.Fatal(err)
			}
			if unfinished {
				site.UnfinishCreation(s, "runbooks/"+name)
				s.CallAt(latest, http.MethodPut, "runbooks/"+name+"/traits", map[string]any{"traits": []any{}})
			}
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "Interrupted creation is continued", "runbook "+name)
			now := read(t, s, name)
			if list, _ := now["traits"].([]any); len(list) != 1 || now["uuid"] != id {
				t.Errorf("the apply has not continued the creation: %v", now)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccRunbook_neverTakesOverAnotherOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := s.Name("bmc")
	s.CallAt(latest, http.MethodPost, "runbooks",
		map[string]any{"name": name, "steps": []any{map[string]any{"interface": "bios", "step": "factory_reset", "order": 1}}})
	w := acctest.NewWorkspace(t, s.Provider()+runbook(name, []string{reset}))
	acctest.Fails(t, w, acctest.Apply(), "A runbook with name "+name+" already exists",
		"terraform import <address of the metal_runbook> "+name)
	s.CallAt(latest, http.MethodDelete, "runbooks/"+name, nil)
}

func TestAccRunbook_planRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := start(t)
	for title, step := range map[string]struct {
		config string
		texts  []string
	}{
		"too old a server": {
			s.Provider(`microversion = "1.91"`) + runbook("CUSTOM_BMC", []string{reset}),
			[]string{"metal_runbook needs API 1.92"},
		},
		"too old for traits": {
			s.Provider(`microversion = "1.111"`) + runbook("CUSTOM_BMC", []string{reset}, traits("CUSTOM_BMC")),
			[]string{"traits needs API 1.112"},
		},
		"too old for descriptions": {
			s.Provider(`microversion = "1.111"`) + runbook("CUSTOM_BMC", []string{reset}, `description = "d"`),
			[]string{"description needs API 1.112"},
		},
		"too old for such a name": {
			s.Provider(`microversion = "1.111"`) + runbook("bmc", []string{reset}),
			[]string{"name needs API 1.112"},
		},
		"a step twice": {
			s.Provider() + runbook("bmc", []string{reset, clock, reset}),
			[]string{"Step bios.factory_reset is also element 0"},
		},
		"a trait": {s.Provider() + runbook("bmc", []string{reset}, traits("bmc")), []string{"CUSTOM_BMC"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			acctest.Fails(t, acctest.NewWorkspace(t, step.config), []string{"plan"}, step.texts...)
		})
	}
}

func TestAccRunbook_planWarnsIfNoNodeCanRunIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	trait := s.Trait("BMC")
	site.AddTrait(s, site.AddNode(t, s, "n1", nil), trait)
	for title, step := range map[string]struct {
		config string
		texts  []string
	}{
		"no traits": {s.Provider() + runbook("bmc", []string{reset}), []string{"Runbook has no traits"}},
		"a trait of no node": {
			s.Provider() + runbook("bmc", []string{reset}, traits(trait+"X")),
			[]string{"No node has the trait " + trait + "X; similar: " + trait},
		},
		"a name of no node": {
			s.Provider(`microversion = "1.111"`) + runbook(trait+"X", []string{reset}),
			[]string{"No node has the trait " + trait + "X"},
		},
		"a trait of the node": {s.Provider() + runbook("bmc", []string{reset}, traits(trait)), nil},
		"the name is a trait": {s.Provider(`microversion = "1.111"`) + runbook(trait, []string{reset}), nil},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			output := acctest.NewWorkspace(t, step.config).Must("plan")
			acctest.Mention(t, output, step.texts...)
			if step.texts == nil {
				acctest.NeverMention(t, output, "No node has", "Runbook has no")
			}
		})
	}
}
