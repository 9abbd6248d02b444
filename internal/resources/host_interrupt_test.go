package resources_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// busyCleaning are the states in which a node is on its way to available.
func busyCleaning() []string { return []string{"cleaning", "clean wait"} }

func TestAccHost_interruptedCleaningGoesOnAtTheNextApply(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s, target("available")))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, name, busyCleaning()...)
	running.Interrupt()
	output, code := running.Wait()
	if code == 0 {
		t.Errorf("the interrupted apply ended with exit code 0:\n%s", output)
	}
	mention(t, output, "Interrupted: prepare node "+name, "What was started goes on in Ironic; the next apply takes it up again")
	host := inState(t, w, hostAddress)
	if host == nil || host.Tainted {
		t.Fatalf("in state is %+v, want an untainted host\n%s", host, output)
	}
	id := text(host.Values["id"])

	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, id, "manage", "provide") // nothing was asked for twice
	if host := inState(t, w, hostAddress); host.Values["id"] != id || host.Values["provision_state"] != "available" {
		t.Errorf("in state is %+v", host)
	}
	noChanges(t, w)
	destroy(t, s, w)
}

// Whether it had begun or not, the inspection that a run was interrupted in takes place once.
func TestFakeHost_interruptedInspectionGoesOnAtTheNextApply(t *testing.T) {
	for _, state := range []string{"verifying", "inspecting"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := acctest.StartFake(t, &fakeironic.Server{StepTime: 2 * time.Second})
			name := s.Name("h")
			w := acctest.NewWorkspace(t, hostConfig(s, `inspect = true`))
			running := w.Start("apply", "-auto-approve")
			awaitState(t, s, name, state)
			running.Interrupt()
			running.Wait()
			s.Await(name, "provision_state", "manageable")

			w.Must("apply", "-auto-approve")
			wantVerbs(t, s, text(s.Node(name)["uuid"]), "manage", "inspect")
			if s.Node(name)["inspection_finished_at"] == nil {
				t.Error("the node was not inspected")
			}
			noChanges(t, w)
		})
	}
}

// A killed run has saved nothing. The host it was making is neither lost nor made twice.
func TestAccHost_killedWhileCreatedIsImported(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	name := s.Name("h")
	w := acctest.NewWorkspace(t, hostConfig(s, target("available")))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, name, busyCleaning()...)
	running.Kill()
	running.Wait()
	id := text(s.Node(name)["uuid"])

	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	mention(t, output, "A node with name "+name+" already exists", "Import the existing node")
	w.Must("import", hostAddress, name)
	w.Must("apply", "-auto-approve")
	if host := inState(t, w, hostAddress); host.Values["id"] != id || host.Values["provision_state"] != "available" {
		t.Errorf("in state is %+v", host)
	}
	noChanges(t, w)
	destroy(t, s, w)
}

// Who presses Ctrl-C before an update has begun is told just that: nothing is wrong with the provider.
func TestFakeHost_interruptedBeforeItsUpdateBegan(t *testing.T) {
	t.Parallel()
	started := make(chan *acctest.Running, 1)
	var once sync.Once
	s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if len(started) > 0 && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
			once.Do(func() { (<-started).InterruptProvider() })
		}
		return nil
	}})
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	w.Configure(hostConfig(s, `description = "changed"`))
	w.Trace()
	running := w.Start("apply", "-auto-approve", "-refresh=false")
	started <- running
	output, code := running.Wait()
	if code == 0 || strings.Contains(output, "Provider produced") {
		t.Errorf("exit code %d: the run says that it worked, or blames the provider:\n%s", code, output)
	}
	mention(t, output, "The run was interrupted")
	w.Must("apply", "-auto-approve")
	if got := s.Node(s.Name("h"))["description"]; got != "changed" {
		t.Errorf("description is %v", got)
	}
	noChanges(t, w)
}
