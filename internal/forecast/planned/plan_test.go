package planned_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/forecast/planned"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// read reads a plan in testdata.
func read(t *testing.T, name string) *planned.Work {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := planned.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// story describes a step in one line: what it does, and after which others, by the beginnings of their addresses.
func story(w *planned.Work, s forecast.Step) string {
	var after []string
	for _, on := range s.After {
		name := w.Steps[on].Address
		if w.Steps[on].Removes {
			name = "-" + name
		}
		after = append(after, name)
	}
	slices.Sort(after)
	text := s.Address + ": " + s.Does
	if s.Machine != nil {
		text += fmt.Sprintf(" on %s (%s)", s.Machine.Name, s.Machine.Class)
	}
	if s.Turn != nil {
		text += fmt.Sprintf(", turn %s %q", s.Turn.Change, s.Turn.Settings.Group)
	}
	if len(after) > 0 {
		text += " after " + strings.Join(after, " ")
	}
	return text
}

func TestRead_planOfARealTerraform(t *testing.T) {
	t.Parallel()
	w := read(t, "site.json")
	hosts := "metal_host.new[0] metal_host.new[1] metal_host.new[2] metal_host.new[3]"
	members := `module.db.metal_deployment.this["db-0"] module.db.metal_deployment.this["db-1"] module.db.metal_deployment.this["db-2"]`
	want := []string{
		"metal_allocation.web[0]: other after " + hosts,
		"metal_allocation.web[1]: other after " + hosts,
		"metal_deployment.gone: undeploy, clean on gone ()",
		`metal_deployment.old: undeploy, clean on old-0 (), turn replace ""`,
		`metal_deployment.old: deploy on old-0 (), turn deploy "" after -metal_deployment.old`,
		`metal_deployment.own: deploy on new-3 (baremetal), turn deploy "" after metal_host.new[3]`,
		`metal_deployment.web[0]: deploy on (known after apply) (baremetal), turn deploy "" after metal_allocation.web[0] metal_allocation.web[1] ` + hosts + " " + members,
		`metal_deployment.web[1]: deploy on (known after apply) (baremetal), turn deploy "" after metal_allocation.web[0] metal_allocation.web[1] ` + hosts + " " + members,
		"metal_host.gone: remove from Ironic after -metal_deployment.gone",
		"metal_host.new[0]: enroll, inspect, clean on new-0 (baremetal)",
		"metal_host.new[1]: enroll, clean on new-1 (baremetal)",
		"metal_host.new[2]: enroll, clean on new-2 (baremetal)",
		"metal_host.new[3]: enroll, clean on new-3 (baremetal)",
		`module.db.metal_deployment.this["db-0"]: rebuild on db-0 (), turn rebuild "databases"`,
		`module.db.metal_deployment.this["db-1"]: rebuild on db-1 (), turn rebuild "databases"`,
		`module.db.metal_deployment.this["db-2"]: rebuild on db-2 (), turn rebuild "databases"`,
	}
	var got []string
	for _, s := range w.Steps {
		got = append(got, story(w, s))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l := w.Provider.Limit; l.Max != 3 || l.StuckAfter != 30*time.Minute || l.Coordination != throttle.CoordinationIronic || w.Provider.Unknown != "" {
		t.Errorf("the limit is %+v, unknown: %q", l, w.Provider.Unknown)
	}
	if n := w.Steps[15].Turn.Settings; n.MaxUnavailable != 1 || *n.Canary != 1 || *n.MaxFailures != 2 {
		t.Errorf("the rollout is %+v", n)
	}
	if w.Steps[5].Machine != w.Steps[12].Machine {
		t.Error("the deployment of a new host is on another machine")
	}
}
