package deployment_test

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// fleet returns the HCL of a deployment on each of the nodes.
func fleet(nodes []string, settings ...string) string {
	quoted := make([]string, len(nodes))
	for i, n := range nodes {
		quoted[i] = acctest.Quoted(n)
	}
	return fmt.Sprintf("resource \"metal_deployment\" \"d\" {\n  for_each = toset([%s])\n  node_id = each.key\n  %s\n}\n",
		strings.Join(quoted, ", "), strings.Join(settings, "\n  "))
}

func addNodes(t *testing.T, s *site.Site, n int) (ids []string) {
	t.Helper()
	for i := range n {
		ids = append(ids, site.AddNode(t, s, fmt.Sprintf("n%d", i+1), nil))
	}
	return ids
}

// images returns how many of the nodes have an image in their instance_info.
func images(s *site.Site, nodes []string, name string) (n int) {
	for _, id := range nodes {
		if site.InstanceInfo(s, id)["image_source"] == acctest.Images+name+".qcow2" {
			n++
		}
	}
	return n
}

// A new image that fails on each machine is tried on three of them; the others keep running what they run.
func TestAccRollout_badImageTouchesThreeMachines(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 5)
	w := acctest.NewWorkspace(t, s.Provider()+fleet(nodes, acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + fleet(nodes, acctest.Image("v2"), acctest.FailingStep))
	output := acctest.Fails(t, w, acctest.Apply(), "Machine was not started", "3 of 3 machines that this run has changed in the same way "+
		"have failed (n", "): "+acctest.LastErrorOfFailingStep,
		"Nothing was sent to the machine, which is as before.", "apply again: machines that have failed before go last")
	if n := strings.Count(strings.Join(strings.Fields(output), " "), "Nothing was sent to it. Apply again once that is mended."); n != 1 {
		t.Errorf("%d errors have the short advice:\n%s", n, output)
	}
	if n := strings.Count(output, "Error: Machine was not started"); n != 2 {
		t.Errorf("%d machines were not started:\n%s", n, output)
	}
	running := 0
	for _, id := range nodes {
		if s.Node(id)["provision_state"] == "active" {
			running++
		}
	}
	if running != 2 || images(s, nodes, "v1") != 2 {
		t.Errorf("%d machines run, %d of them what they ran before", running, images(s, nodes, "v1"))
	}
	acctest.Mention(t, w.Must("plan"), "0 to add, 5 to change, 0 to destroy")
	w.Configure(s.Provider() + fleet(nodes, acctest.Image("v3")))
	w.Must("apply", "-auto-approve")
	if n := images(s, nodes, "v3"); n != 5 {
		t.Errorf("%d of 5 machines run the mended image", n)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// away watches how many machines of a fake are away at once.
type away struct {
	mu      sync.Mutex
	nodes   map[string]bool
	begun   int
	ended   int
	most    int
	checked func(a *away) // is called under the lock when another machine begins
}

// fake returns a fake Ironic whose machines are watched. An operation takes a while.
func (a *away) fake() *fakeironic.Server {
	a.nodes = map[string]bool{}
	return &fakeironic.Server{
		StepTime: 30 * time.Millisecond,
		Reject: func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/states/p") {
				a.begin(strings.Split(r.URL.Path, "/")[3])
			}
			return nil
		},
		Fail: func(n fakeironic.Node, verb string) string {
			if verb == "deleted" { // another deployment follows
				return ""
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.nodes[n.UUID] {
				a.ended++
			}
			delete(a.nodes, n.UUID)
			return ""
		},
	}
}

func (a *away) begin(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.nodes[id] {
		a.nodes[id] = true
		a.begun++
	}
	a.most = max(a.most, len(a.nodes))
	if a.checked != nil {
		a.checked(a)
	}
}

func (a *away) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun, a.ended, a.most, a.nodes = 0, 0, 0, map[string]bool{}
}

// Restarts, rebuilds and replacements of a group happen one after the other.
func TestFakeRollout_groupChangesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	watch := &away{}
	s := site.StartFake(t, watch.fake())
	nodes := addNodes(t, s, 4)
	const group = `rollout = { group = "databases", max_unavailable = 1 }`
	w := acctest.NewWorkspace(t, s.Provider()+fleet(nodes, acctest.Image("v1"), `restart_triggers = { a = "1" }`, group))
	w.Must("apply", "-auto-approve")
	for _, change := range []string{
		acctest.Image("v1") + "\n" + `restart_triggers = { a = "2" }`,
		acctest.Image("v2") + "\n" + `restart_triggers = { a = "2" }`,
		acctest.Image("v3") + "\n" + `restart_triggers = { a = "2" }` + "\n" + `on_change = "replace"`,
	} {
		watch.reset()
		w.Configure(s.Provider() + fleet(nodes, change, group))
		w.Must("apply", "-auto-approve")
		if watch.most != 1 || watch.begun != 4 {
			t.Errorf("%d machines changed, %d at once: %s", watch.begun, watch.most, change)
		}
		acctest.NoChanges(t, w)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccRollout_refusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes := addNodes(t, s, 2)
	w := acctest.NewWorkspace(t, s.Provider())
	for config, want := range map[string]string{
		`rollout = { max_unavailable = 1 }`:                              "Set rollout.group, with the same name for all members",
		`rollout = { group = "g" }`:                                      "rollout.group alone limits nothing",
		`rollout = { pause = "1m" }`:                                     "rollout.pause has an effect only with max_unavailable or canary",
		`rollout = { group = "g", max_unavailable = 0 }`:                 "must be at least 1",
		`rollout = { group = "g", max_unavailable = 1, pause = "soon" }`: "duration",
		`rollout = { group = "g", max_unavailable = each.key == ` + acctest.Quoted(nodes[0]) +
			` ? 1 : 2 }`: `another metal_deployment or metal_host has another max_unavailable`,
	} {
		w.Configure(s.Provider() + fleet(nodes, acctest.Image("v1"), config))
		acctest.Fails(t, w, []string{"plan"}, want)
	}
	for _, id := range nodes {
		if state := s.Node(id)["provision_state"]; state != "available" {
			t.Errorf("node %s is %v", path.Base(id), state)
		}
	}
}

// A member whose machine does not answer Ironic is undeployed at once when it is replaced, although Ironic accepts no note of its turn
// then.
func TestFakeRollout_memberThatNeverAnswersIsReplaced(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(image string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image(image), `on_change = "replace"`,
			`rollout = { group = "databases", max_unavailable = 1 }`)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	s.Fake.Set(node, "provision_state", "wait call-back")
	s.Fake.Set(node, "target_provision_state", "active")
	w.Configure(config("v2"))
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted", "active")
	if extra, _ := s.Node(node)["extra"].(map[string]any); extra[notes.KeyTurn] != nil {
		t.Errorf("the note of a turn is left: %v", extra)
	}
	w.Must("destroy", "-auto-approve")
}

// A member that is not ready after its rebuild keeps the others from changing. Once it answers, the next apply only checks it, and goes on.
func TestAccRollout_memberThatIsNotReadyStopsTheGroup(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	nodes, p := addNodes(t, s, 3), acctest.NewPort(t)
	config := func(image string) string {
		return s.Provider() + fleet(nodes, acctest.Image(image), `rollout = { group = "databases", max_unavailable = 1 }`, checkOf(p, soon))
	}
	p.Open()
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	p.Close()
	w.Configure(config("v2"))
	output := acctest.Fails(t, w, acctest.Apply(), "is ready", `was not started: rollout group "databases" lacks n`,
		"already, and no run works on that")
	if n := strings.Count(output, "Error: Machine was not started"); n != 2 || images(s, nodes, "v2") != 1 {
		t.Errorf("%d machines were not started, %d run the new image:\n%s", n, images(s, nodes, "v2"), output)
	}
	acctest.Fails(t, w, acctest.Apply(), "is ready", "Machine was not started") // still not
	if n := images(s, nodes, "v2"); n != 1 {
		t.Errorf("%d machines run the new image", n)
	}
	p.Open()
	w.Must("apply", "-auto-approve")
	if n := images(s, nodes, "v2"); n != 3 {
		t.Errorf("%d of 3 machines run the new image", n)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
