package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantCleanings saves a plan, and fails the test unless that says how cleanings change, such as "0 -> 1", or "0 -> ?" if the number is not
// known.
func wantCleanings(t *testing.T, w *acctest.Workspace, want string) {
	t.Helper()
	change := w.Save()[acctest.HostAddress]
	after := change.After["cleanings"]
	if change.Unknown["cleanings"] != nil {
		after = "?"
	}
	if got := fmt.Sprint(change.Before["cleanings"], " -> ", after); got != want {
		t.Errorf("the plan has cleanings %s, want %s", got, want)
	}
}

// The JSON of a saved plan names each host that exists and that Ironic boots, restarts, configures or cleans.
func TestAccHost_savedPlanCountsCleanings(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(settings ...string) string {
		return hostConfig(s, settings...) + "resource \"terraform_data\" \"stage\" {\n  input = \"true\"\n}\n"
	}
	w := acctest.NewWorkspace(t, config())
	defer acctest.Destroy(t, s, w)
	available := acctest.Target("available")
	for _, step := range []struct {
		want     string
		settings []string
	}{
		{"<nil> -> 0", []string{recabled("1")}},
		{"0 -> 0", []string{recabled("1"), `description = "d"`}},
		{"0 -> 1", []string{recabled("2")}},
		{"1 -> 2", []string{recabled("2"), available}},
		{"2 -> 2", []string{recabled("2"), available, "retired = true"}},
		{"2 -> 3", []string{recabled("2"), available, "retired = false"}},
		{"3 -> 3", []string{recabled("2"), available, "automated_clean = false"}},
		{"3 -> 3", []string{recabled("2"), available, "automated_clean = false", `power_state = "on"`}},
		{"3 -> 3", []string{recabled("2"), acctest.Target("manageable"), "automated_clean = false"}},
		{"3 -> 3", []string{recabled("2"), available, "automated_clean = false"}},
		{"3 -> ?", []string{"inspect_triggers = { recabled = terraform_data.later.output }\n}\nresource \"terraform_data\" \"later\" {\n " +
			" input = \"3\""}},
	} {
		w.Configure(config(step.settings...))
		wantCleanings(t, w, step.want)
		w.Must("apply", "saved")
		acctest.NoChanges(t, w)
	}
	if host := acctest.InState(t, w, acctest.HostAddress); fmt.Sprint(host.Values["cleanings"]) != "4" {
		t.Errorf("the state has %v", host.Values["cleanings"])
	}
}

// Terraform destroys by what is in the state, so the plan says what was applied, and warns once of each kind.
func TestAccHost_destroyPlanSaysWhatStaysInIronic(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(onDestroy string) string {
		text := s.Provider()
		for i, name := range []string{"a", "b", "c"} {
			host := acctest.HostBlock(s.Name(name), `driver = "fake-hardware"`)
			if onDestroy != "" && i > 0 {
				host = acctest.HostBlock(s.Name(name), `driver = "fake-hardware"`, "on_destroy = "+acctest.Quoted(onDestroy))
			}
			text += strings.Replace(host, `"h"`, acctest.Quoted(name), 1)
		}
		return text
	}
	w := acctest.NewWorkspace(t, config(""))
	w.Must(acctest.Apply()...)
	w.Configure(config("forget"))
	output := w.Must("plan", "-destroy")
	acctest.Mention(t, output, "Destroying removes the host from Ironic", "set on_destroy = \"forget\" and apply before you destroy",
		"and 2 more similar warnings elsewhere")
	acctest.NeverMention(t, output, "Destroying leaves the host in Ironic")
	w.Must(acctest.Apply()...)
	output = w.Must("plan", "-destroy")
	acctest.Mention(t, output, "Destroying removes the host from Ironic", "Node "+s.Name("a")+" is removed",
		"Destroying leaves the host in Ironic", "and one more similar warning elsewhere")
	w.Configure(config("delete"))
	w.Must(acctest.Apply()...)
	w.Must("destroy", "-auto-approve")
}

// A host with create_before_destroy cannot be replaced: its node stays, the apply fails, and no later apply deletes the node.
func TestAccHost_createBeforeDestroyReplacesNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`,
		"lifecycle {\n    create_before_destroy = true\n  }"))
	w.RealCLI()
	w.Must("apply", "-auto-approve")
	id := acctest.InState(t, w, acctest.HostAddress).Values["id"]
	failed := acctest.Fails(t, w, []string{"apply", "-auto-approve", "-replace=" + acctest.HostAddress})
	acctest.Mention(t, strings.Join(strings.Fields(failed), " "), "cannot replace a host of the same machine", "Apply once more")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 1 destroyed")
	acctest.NoChanges(t, w)
	if got := acctest.InState(t, w, acctest.HostAddress).Values["id"]; got != id || s.Node(site.Text(id))["name"] != s.Name("h") {
		t.Errorf("the node was %v, and is %v", id, got)
	}
	w.Must("destroy", "-auto-approve")
}
