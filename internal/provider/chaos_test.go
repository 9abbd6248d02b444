package provider_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// chaosLife is the HCL of a host, an allocation of it and a deployment. Without a limit, no run waits for the lock of a killed one.
func chaosLife(s *site.Site, image string) string {
	return s.Provider(`provisioning_limit = { max_concurrent = 0 }`) +
		acctest.Host(s, 1, fmt.Sprintf("ports = { %q = {} }", s.MAC(1)), `power_state = "off"`) +
		acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("a")), "candidate_nodes = [metal_host.h1.id]") +
		acctest.Allocated(acctest.Image(image))
}

// killer kills a run at a request.
type killer struct {
	method, ending, verb string
	executed             bool

	mu      sync.Mutex
	running *acctest.Running // nil: nothing is killed
	done    bool
}

// disturb kills the run with SIGKILL at the first request that matches, before or after Ironic executes it.
func (k *killer) disturb(r *http.Request, body []byte) *site.Disturbance {
	var asked struct{ Target string }
	_ = json.Unmarshal(body, &asked) // a body without a verb has none
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running == nil || k.done || r.Method != k.method || !strings.HasSuffix(r.URL.Path, k.ending) || asked.Target != k.verb {
		return nil
	}
	k.done = true
	return &site.Disturbance{Drop: true, Executed: k.executed, After: k.running.Kill}
}

// start starts a run that will be killed.
func (k *killer) start(w *acctest.Workspace, args ...string) *acctest.Running {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = w.Start(args...)
	return k.running
}

func TestAccChaos_nextApplyFinishesKilledRun(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]*killer{
		"node enrolled":        {method: http.MethodPost, ending: "/v1/nodes", executed: true},
		"cleaning not asked":   {method: http.MethodPut, ending: "/states/provision", verb: "provide"},
		"node allocated":       {method: http.MethodPost, ending: "/v1/allocations", executed: true},
		"deployment asked":     {method: http.MethodPut, ending: "/states/provision", verb: "active", executed: true},
		"undeployment asked":   {method: http.MethodPut, ending: "/states/provision", verb: "deleted", executed: true},
		"allocation not freed": {method: http.MethodDelete, ending: "", verb: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			w := acctest.NewWorkspace(t, chaosLife(s.Behind(t, k.disturb), "v1"))
			args := []string{"apply", "-auto-approve"}
			if destroys := k.verb == "deleted" || k.method == http.MethodDelete; destroys {
				w.Must(args...)
				args = []string{"destroy", "-auto-approve"}
			}
			if output, code := k.start(w, args...).Wait(); code == 0 || !k.done {
				t.Fatalf("the run was not killed:\n%s", output)
			}
			w.Must(args...)
			if args[0] == "apply" {
				site.WantVerbs(t, s, site.Text(s.Node(s.Name("h1"))["uuid"]), "manage", "provide", "active")
				acctest.NoChanges(t, w)
			}
			acctest.Destroy(t, s, w)
		})
	}
}

// killedGroup returns a workspace in which a run was killed while it let a group grow between two sizes, and the configuration of a group
// of another size.
func killedGroup(t *testing.T, s *site.Site, from, to int) (w *acctest.Workspace, config func(size int) string) {
	t.Helper()
	for i := range 3 {
		site.AddNode(t, s, fmt.Sprintf("n%d", i), nil)
	}
	k := &killer{method: http.MethodPatch, ending: ""}
	behind := s.Behind(t, k.disturb)
	config = func(size int) string {
		return behind.Provider() + fmt.Sprintf("resource \"metal_allocation_group\" \"g\" {\n  name = %q\n  size = %d\n  resource_class "+
			"= %q\n}\n", s.Name("g"), size, s.Class())
	}
	w = acctest.NewWorkspace(t, config(from))
	if from > 0 {
		w.Must("apply", "-auto-approve")
	}
	w.Configure(config(to))
	if output, code := k.start(w, "apply", "-auto-approve").Wait(); code == 0 || !k.done {
		t.Fatalf("the run was not killed:\n%s", output)
	}
	return w, config
}

// wantGroup fails a test unless the first allocations of the group exist, and the others of three do not.
func wantGroup(t *testing.T, s *site.Site, size int) {
	t.Helper()
	for i := range 3 {
		if name := s.Name("g") + fmt.Sprintf("-%d", i); (site.AllocationNamed(s, name) != nil) != (i < size) {
			t.Errorf("allocation %s exists: %t", name, i >= size)
		}
	}
}

// A run is killed while it reserves nodes for a group. The next apply takes over what the run has reserved, or releases it.
func TestAccChaos_nextApplyFinishesKilledGroup(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w, config := killedGroup(t, s, 0, 3)
	w.Configure(config(2))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Interrupted creation is continued")
	acctest.NoChanges(t, w)
	wantGroup(t, s, 2)
	w.Must("destroy", "-auto-approve")
}

// A run is killed while a group grows, and the configuration goes back to the former size. The plan shows what the run has reserved, and
// the apply releases it.
func TestAccChaos_nextApplyReleasesWhatKilledGrowthReserved(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w, config := killedGroup(t, s, 1, 3)
	w.Configure(config(1))
	output, changes := w.Plan()
	if !changes {
		t.Error("the plan does not show what the killed run has reserved")
	}
	left := s.Name("g") + "-1, " + s.Name("g") + "-2"
	acctest.Mention(t, output, "- leftovers", "Reservations of a killed run are released", left)
	acctest.Mention(t, w.Must("plan", "-destroy"), "Reservations of a killed run are released", left)
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	wantGroup(t, s, 1)
	w.Must("destroy", "-auto-approve")
}

// Destroying the group releases what a killed run has reserved. While that is in use, it releases nothing, so that it can be repeated.
func TestAccChaos_destroyReleasesWhatKilledGrowthReserved(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w, _ := killedGroup(t, s, 1, 3)
	node := site.Text(site.AllocationNamed(s, s.Name("g")+"-2")["node_uuid"])
	s.Patch(node, "add", "/instance_info", map[string]any{
		"image_source":   acctest.Images + "x.qcow2",
		"image_checksum": strings.Repeat("a1", 32),
	})
	s.Verb(node, "active", "active")
	acctest.Fails(t, w, []string{"destroy", "-auto-approve"}, "Could not release what a killed run has reserved for the group", s.Name("g")+
		"-2", "metal undeploy")
	if site.AllocationNamed(s, s.Name("g")+"-0") == nil {
		t.Error("the member is released, so the next refresh forgets the group")
	}
	s.Verb(node, "deleted", "available")
	w.Must("destroy", "-auto-approve")
	wantGroup(t, s, 0)
}

// variable returns a number in the environment, or its default.
func variable(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// storm disturbs a tenth of the requests, while it blows.
type storm struct {
	mu     sync.Mutex
	random *rand.Rand
	blows  bool
}

func (s *storm) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *storm) set(blows bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blows = blows
}

func (s *storm) disturb(*http.Request, []byte) *site.Disturbance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.blows || s.random.IntN(10) > 0 {
		return nil
	}
	const locked = `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node is locked by host localhost, please retry after the current operation is completed.\"}"}`
	slow := time.Duration(s.random.IntN(3000)) * time.Millisecond
	return []*site.Disturbance{
		{Status: http.StatusServiceUnavailable, Body: "{}"},
		{Drop: true},
		{Drop: true, Executed: true},
		{Status: http.StatusGatewayTimeout, Body: "<html>504 Gateway Time-out</html>", Executed: true},
		{Status: http.StatusBadGateway, Body: "<html>502 Bad Gateway</html>"},
		{Status: http.StatusConflict, Body: locked},
		{Before: func() { <-time.After(slow) }},
	}[s.random.IntN(7)]
}

// calmApplies is how many applies a user needs at most when the storm is over: what has failed is tainted, for example.
const calmApplies = 3

// In a storm of faults, runs are killed at random moments. When it is over, the next applies finish everything, and nothing is left.
func TestAccChaos_storm(t *testing.T) {
	t.Parallel()
	seed, rounds := variable(t, "METAL_CHAOS_SEED", 1), variable(t, "METAL_CHAOS_ROUNDS", 3)
	weather := &storm{random: rand.New(rand.NewPCG(uint64(seed), 0))} //nolint:gosec // a test wants to repeat it; no secret
	s := site.Start(t, nil)
	behind := s.Behind(t, weather.disturb)
	w := acctest.NewWorkspace(t, chaosLife(behind, "v0"))
	for round := range rounds {
		args := []string{"apply", "-auto-approve"}
		if round > 0 && weather.below(4) == 0 {
			args = []string{"destroy", "-auto-approve"}
		} else {
			w.Configure(chaosLife(behind, fmt.Sprintf("v%d", weather.below(3))))
		}
		weather.set(true)
		running := w.Start(args...)
		ended := make(chan struct{})
		go func() {
			running.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Duration(weather.below(8000)) * time.Millisecond):
			running.Kill()
			<-ended
		}
		weather.set(false)
		t.Logf("seed %d, round %d: %s", seed, round, args[0])
		var output string
		code := 1
		for try := 0; code != 0 && try < calmApplies; try++ {
			output, code = w.Run(args...)
		}
		if code != 0 {
			t.Fatalf("seed %d, round %d: %s does not finish after the storm:\n%s", seed, round, args[0], output)
		}
		if args[0] == "apply" {
			acctest.NoChanges(t, w)
		}
	}
	acctest.Destroy(t, s, w)
}
