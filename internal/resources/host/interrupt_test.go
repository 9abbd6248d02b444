package host_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccHost_nextApplyContinuesInterruptedCleaning(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available")))
	release := s.Hold(site.BusyCleaning()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, name, site.BusyCleaning()...)
	running.Interrupt()
	output, code := running.Wait()
	if code == 0 {
		t.Errorf("the interrupted apply ended with exit code 0:\n%s", output)
	}
	acctest.Mention(t, output, "Interrupted: prepare node "+name, "Ironic continues the operations that were started; the next apply "+
		"continues from there")
	host := acctest.InState(t, w, acctest.HostAddress)
	if host == nil || host.Tainted {
		t.Fatalf("the state has %+v, want an untainted host\n%s", host, output)
	}
	id := site.Text(host.Values["id"])

	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	site.WantVerbs(t, s, id, "manage", "provide") // each verb was sent once
	if host := acctest.InState(t, w, acctest.HostAddress); host.Values["id"] != id || host.Values["provision_state"] != "available" {
		t.Errorf("the state has %+v", host)
	}
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}

// A run is interrupted before or during an inspection. The inspection takes place once.
func TestFakeHost_nextApplyContinuesInterruptedInspection(t *testing.T) {
	for _, state := range []string{"verifying", "inspecting"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, nil)
			release := s.Hold(state)
			name := s.Name("h")
			w := acctest.NewWorkspace(t, hostConfig(s, `inspect = true`))
			running := w.Start("apply", "-auto-approve")
			site.AwaitState(t, s, name, state)
			running.Interrupt()
			running.Wait()
			release()
			s.Await(name, "provision_state", "manageable")

			w.Must("apply", "-auto-approve")
			site.WantVerbs(t, s, site.Text(s.Node(name)["uuid"]), "manage", "inspect")
			if s.Node(name)["inspection_finished_at"] == nil {
				t.Error("the node was not inspected")
			}
			acctest.NoChanges(t, w)
		})
	}
}

// A killed run has saved nothing. The next apply finishes its host, and says so.
func TestAccHost_killedCreationIsFinished(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available")))
	release := s.Hold(site.BusyCleaning()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, name, site.BusyCleaning()...)
	running.Kill()
	running.Wait()
	id := site.Text(s.Node(name)["uuid"])

	acctest.Mention(t, acctest.WaitOut(t, s, w, release, "apply", "-auto-approve"), "Interrupted creation is continued", name)
	site.WantVerbs(t, s, id, "manage", "provide") // each verb was sent once
	if host := acctest.InState(t, w, acctest.HostAddress); host.Values["id"] != id || host.Values["provision_state"] != "available" {
		t.Errorf("the state has %+v", host)
	}
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}

// After Ctrl-C before an update has begun, the error says that the run was interrupted, and does not blame the provider.
func TestFakeHost_interruptedBeforeUpdate(t *testing.T) {
	t.Parallel()
	started := make(chan *acctest.Running, 1)
	var starts atomic.Bool
	var once sync.Once
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if starts.Load() && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
			once.Do(func() { (<-started).InterruptProvider() })
		}
		return nil
	}})
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	w.Configure(hostConfig(s, `description = "changed"`))
	w.Trace()
	starts.Store(true)
	running := w.Start("apply", "-auto-approve", "-refresh=false")
	started <- running
	output, code := running.Wait()
	if code == 0 || strings.Contains(output, "Provider produced") {
		t.Errorf("exit code %d: the run says that it worked, or blames the provider:\n%s", code, output)
	}
	acctest.Mention(t, output, "The run was interrupted")
	w.Must("apply", "-auto-approve")
	if got := s.Node(s.Name("h"))["description"]; got != "changed" {
		t.Errorf("description is %v", got)
	}
	acctest.NoChanges(t, w)
}
