package inspectionrule_test

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
	version = "1.96"
	address = "metal_inspection_rule.r"
	addGPU  = `{ op = "add-trait", args = jsonencode({ name = "CUSTOM_GPU" }) }`
	isGPU   = `{ op = "contains", args = jsonencode({ value = "{inventory}", regex = "NVIDIA" }) }`
)

// start returns an Ironic that has inspection rules.
func start(t *testing.T) *site.Site {
	t.Helper()
	s := site.Start(t, nil)
	s.SkipBefore(t, 96)
	return s
}

// rule returns the HCL of the rule "r".
func rule(description, actions string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_inspection_rule\" \"r\" {\n  description = %q\n  actions = [%s]\n  %s\n}\n", description, actions,
		strings.Join(settings, "\n  "))
}

func conditions(list ...string) string { return "conditions = [" + strings.Join(list, ", ") + "]" }

// call sends a request as another client.
func call(t *testing.T, s *site.Site, method, path string, body any) map[string]any {
	t.Helper()
	status, answer := s.CallAt(version, method, "inspection_rules"+path, body)
	if status/100 != 2 {
		t.Fatalf("%s inspection_rules%s: %d %v", method, path, status, answer)
	}
	return answer
}

func id(t *testing.T, w *acctest.Workspace) string {
	t.Helper()
	return site.Text(acctest.InState(t, w, address).Values["id"])
}

func loseState(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	if err := os.Remove(filepath.Join(w.Dir, "terraform.tfstate")); err != nil {
		t.Fatal(err)
	}
}

func TestAccInspectionRule_changesInPlace(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := acctest.NewWorkspace(t, s.Provider()+rule(s.Name("gpu"), addGPU))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	first := id(t, w)
	w.Configure(s.Provider() + rule(s.Name("gpus"), addGPU+`, { op = "set-plugin-data", args = jsonencode({ path = "a.b", value = 1 }) }`,
		"priority = 10",
		conditions(isGPU, `{ op = "!eq", args = jsonencode({ values = ["{item}", "b"] }), loop = jsonencode(["a", "c"]) }`)))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	now := call(t, s, http.MethodGet, "/"+first, nil)
	if list, _ := now["conditions"].([]any); len(list) != 2 || now["description"] != s.Name("gpus") || now["priority"] != 10.0 {
		t.Errorf("Ironic has %v", now)
	}
	w.Configure(s.Provider() + rule(s.Name("gpus"), addGPU)) // no condition is left
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	if list, _ := call(t, s, http.MethodGet, "/"+first, nil)["conditions"].([]any); len(list) != 0 {
		t.Errorf("the rule still has the conditions %v", list)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccInspectionRule_correctsWhatOthersChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := acctest.NewWorkspace(t, s.Provider()+rule(s.Name("gpu"), addGPU, conditions(isGPU)))
	w.Must("apply", "-auto-approve")
	first := id(t, w)
	call(t, s, http.MethodPatch, "/"+first, []any{
		map[string]any{"op": "add", "path": "/conditions", "value": []any{}},
		map[string]any{"op": "add", "path": "/actions", "value": []any{map[string]any{"op": "fail", "args": map[string]any{"msg": "no"}}}},
	})
	output, _ := w.Plan()
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy", `"fail" -> "add-trait"`, "conditions")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	call(t, s, http.MethodDelete, "/"+first, nil)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 0 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
}

func TestAccInspectionRule_sensitiveRuleKeepsItsState(t *testing.T) {
	t.Parallel()
	s := start(t)
	config := func(password, sensitive string) string {
		return s.Provider() + rule(s.Name("bmc"),
			`{ op = "set-attribute", args = jsonencode({ path = "/driver_info/redfish_password", value = "`+password+`" }) }`, sensitive)
	}
	w := acctest.NewWorkspace(t, config("one", "sensitive = true"))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	first := id(t, w)
	w.Configure(config("two", "sensitive = true"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	if got := id(t, w); got != first {
		t.Errorf("the rule is another one, %s", got)
	}
	w.Configure(config("two", "sensitive = false"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "sensitive", "forces replacement", "1 added, 0 changed, 1 destroyed")
	acctest.NoChanges(t, w)
	w.Configure(config("two", "sensitive = true"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
}

func TestAccInspectionRule_importsByDescriptionAndUUID(t *testing.T) {
	t.Parallel()
	s := start(t)
	description := s.Name("GPU nodes")
	w := acctest.NewWorkspace(t, s.Provider()+rule(description, addGPU, conditions(isGPU), "priority = 7"))
	w.Must("apply", "-auto-approve")
	first := id(t, w)
	for _, ref := range []string{description, first} {
		w.Must("state", "rm", address)
		w.Must("import", address, ref)
		acctest.NoChanges(t, w)
	}
	twin := site.Text(call(t, s, http.MethodPost, "", map[string]any{
		"description": description, "conditions": []any{},
		"actions": []any{map[string]any{"op": "fail", "args": map[string]any{"msg": "x"}}},
	})["uuid"])
	w.Must("state", "rm", address)
	acctest.Fails(t, w, []string{"import", address, description}, "2 inspection rules have the description", twin)
	acctest.Fails(t, w, []string{"import", address, s.Name("none")}, "No inspection rule has the description")
	call(t, s, http.MethodDelete, "/"+twin, nil)
	w.Must("import", address, first)
	w.Must("destroy", "-auto-approve")
}

func TestAccInspectionRule_nextRunFinishesWhatKilledRunBegan(t *testing.T) {
	t.Parallel()
	for title, settings := range map[string]string{"open": conditions(isGPU), "sensitive": "sensitive = true"} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			w := acctest.NewWorkspace(t, s.Provider()+rule(s.Name("gpu"), addGPU, settings))
			w.Must("apply", "-auto-approve")
			first := id(t, w)
			loseState(t, w)
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "Interrupted creation is continued", first)
			if got := id(t, w); got != first {
				t.Errorf("the apply has made another rule, %s", got)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccInspectionRule_neverTakesOverChangedRule(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := acctest.NewWorkspace(t, s.Provider()+rule(s.Name("gpu"), addGPU))
	w.Must("apply", "-auto-approve")
	first := id(t, w)
	call(t, s, http.MethodPatch, "/"+first, []any{map[string]any{"op": "add", "path": "/priority", "value": 3}})
	loseState(t, w)
	w.Must("apply", "-auto-approve")
	if got := id(t, w); got == first {
		t.Error("the apply has taken over a rule that was changed")
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	call(t, s, http.MethodDelete, "/"+first, nil)
}

func TestAccInspectionRule_sameRuleTwiceIsAnError(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := acctest.NewWorkspace(t, s.Provider()+rule(s.Name("gpu"), addGPU, "count = 2"))
	acctest.Fails(t, w, acctest.Apply(), "Another resource of this configuration creates the same inspection rule")
	w.Must("destroy", "-auto-approve")
}

func TestAccInspectionRule_planRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := start(t)
	for title, step := range map[string]struct {
		config string
		texts  []string
	}{
		"too old a server": {s.Provider(`microversion = "1.95"`) + rule("r", addGPU), []string{"metal_inspection_rule needs API 1.96"}},
		"an action": {
			s.Provider() + rule("r", `{ op = "add-trai", args = jsonencode({ name = "CUSTOM_A" }) }`),
			[]string{`Ironic has no "add-trai" here`, "add-trait"},
		},
		"a condition": {
			s.Provider() + rule("r", addGPU, conditions(`{ op = "!!eq", args = jsonencode({ values = [] }) }`)),
			[]string{`Ironic has no "!!eq" here`},
		},
		"a missing argument": {
			s.Provider() + rule("r", `{ op = "fail", args = jsonencode({ mesg = "x" }) }`),
			[]string{"fail needs the argument msg", "fail has no argument mesg"},
		},
		"values": {
			s.Provider() + rule("r", addGPU, conditions(`{ op = "eq", args = jsonencode({ values = "x" }) }`)),
			[]string{"values must be a JSON array"},
		},
		"a trait": {
			s.Provider() + rule("r", `{ op = "add-trait", args = jsonencode({ name = "gpu" }) }`),
			[]string{`"gpu" is not a trait`},
		},
		"arguments as a list": {s.Provider() + rule("r", `{ op = "fail", args = jsonencode(["x"]) }`), []string{"must be a JSON object"}},
		"multiple, no loop": {
			s.Provider() + rule("r", addGPU,
				conditions(`{ op = "is-none", args = jsonencode({ value = "x" }), multiple = "all" }`)),
			[]string{"multiple has no effect without loop"},
		},
		"a loop": {
			s.Provider() + rule("r", `{ op = "fail", args = jsonencode({ msg = "x" }), loop = "3" }`),
			[]string{"loop must be a JSON array"},
		},
		"a phase":    {s.Provider() + rule("r", addGPU, `phase = "early"`), []string{"main"}},
		"a priority": {s.Provider() + rule("r", addGPU, `priority = 10000`), []string{"9999"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			acctest.Fails(t, acctest.NewWorkspace(t, step.config), []string{"plan"}, step.texts...)
		})
	}
}
