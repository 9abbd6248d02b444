package acctest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Destroy destroys all resources of a workspace, and fails the test if something with its names is left in Ironic. Defer it: when
// cleanups run, the test's context has ended, and the CLI cannot start.
func Destroy(t *testing.T, s *site.Site, w *Workspace) {
	t.Helper()
	w.Must("destroy", "-auto-approve")
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left in Ironic: %v", left)
	}
}

// Stop is a way to end a running CLI: Ctrl-C or kill -9.
type Stop func(*testing.T, *site.Site, *Running)

// Interrupt sends Ctrl-C to a running CLI and waits for its end. The test fails if the CLI exits with 0.
func Interrupt(t *testing.T, running *Running) (output string) {
	t.Helper()
	running.Interrupt()
	output, code := running.Wait()
	if code == 0 {
		t.Errorf("an interrupted run exits with 0:\n%s", output)
	}
	return output
}

// Kill sends kill -9 to the CLI and the provider and waits for their end. It waits until no run holds the lock of the
// provisioning limit; otherwise the next run would wait until that lock expires.
func Kill(t *testing.T, s *site.Site, running *Running) {
	t.Helper()
	site.Until(t, "the lock of the provisioning limit to end", func() bool { return !isLimitLocked(s) })
	running.Kill()
	running.Wait()
}

// enoughLooks are the looks at nodes after which a run waits for held machines.
const enoughLooks = 5

// WaitOut is Must on a site whose machines are held. It releases them once the run has looked at nodes several times, and fails the test if
// the run ends before: it has not waited.
func WaitOut(t *testing.T, s *site.Site, w *Workspace, release func(), args ...string) (output string) {
	t.Helper()
	if s.Fake == nil {
		return w.Must(args...)
	}
	defer release() // also if the test fails: what cleans up waits for the machines
	before, code := len(s.Fake.Requests()), -1
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		output, code = w.Run(args...)
	}()
	looks := 0
	site.Until(t, "the run to look at the held machines", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		looks = 0
		for _, r := range s.Fake.Requests()[before:] {
			if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes") {
				looks++
			}
		}
		return looks >= enoughLooks
	})
	release()
	<-ended
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), code, output)
	}
	if looks < enoughLooks {
		t.Errorf("%s has not waited for the held machines: it ended after %d looks at nodes\n%s", strings.Join(args, " "), looks, output)
	}
	return output
}

// isLimitLocked reports whether a run holds the lock of the provisioning limit.
func isLimitLocked(s *site.Site) bool {
	list, _ := s.Must(http.MethodGet, "chassis", nil)["chassis"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		record, _ := item.(map[string]any)
		return strings.Contains(site.Text(record["description"]), "admission lock")
	})
}

// Fails runs a CLI and fails the test unless the CLI fails and its output has all texts.
func Fails(t *testing.T, w *Workspace, args []string, texts ...string) (output string) {
	t.Helper()
	output, code := w.Run(args...)
	if code == 0 {
		t.Errorf("%v worked:\n%s", args, output)
	}
	Mention(t, output, texts...)
	return output
}

// Apply returns the arguments of the CLI for an apply without questions.
func Apply() []string { return []string{"apply", "-auto-approve"} }

// NoChanges fails a test whose plan is not empty.
func NoChanges(t *testing.T, w *Workspace) {
	t.Helper()
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
}

// NoDrift fails a test if a refresh changes the state, in a way that the plan shows or in private state. A pipeline that looks for
// drift by exit code needs that.
func NoDrift(t *testing.T, w *Workspace) {
	t.Helper()
	output, code := w.Run("plan", "-refresh-only", "-detailed-exitcode")
	if code == 0 {
		return
	}
	file := filepath.Join(w.Dir, "terraform.tfstate")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.Must("apply", "-refresh-only", "-auto-approve")
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if sameState(t, before, after) {
		return
	}
	var lines []string
	for sign, texts := range map[string][2][]byte{"-": {before, after}, "+": {after, before}} {
		for line := range strings.Lines(string(texts[0])) {
			if !strings.Contains(string(texts[1]), line) {
				lines = append(lines, sign+line)
			}
		}
	}
	t.Errorf("plan -refresh-only exits with %d:\n%s\nA refresh changes the state:\n%s", code, output, strings.Join(lines, ""))
}

// sameState reports whether two states differ in the serial and in the order of the sensitive attributes only, which Terraform writes in
// any order and then takes for a change.
func sameState(t *testing.T, before, after []byte) bool {
	t.Helper()
	var states [2]map[string]any
	for i, text := range [][]byte{before, after} {
		if err := json.Unmarshal(text, &states[i]); err != nil {
			t.Fatal(err)
		}
		delete(states[i], "serial")
		resources, _ := states[i]["resources"].([]any)
		for _, resource := range resources {
			instances, _ := resource.(map[string]any)["instances"].([]any)
			for _, instance := range instances {
				sensitive, _ := instance.(map[string]any)["sensitive_attributes"].([]any)
				slices.SortFunc(sensitive, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	}
	return reflect.DeepEqual(states[0], states[1])
}
