package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// illness is why machines of a site fail, in Ironic's words.
type illness struct {
	kind string // "image": it is not there; "site": the conductor is full; "disk": of some machines; "passes": by itself

	mu     sync.Mutex
	mended bool
	broken map[string]bool // machines with a broken disk
	left   map[string]int  // how often operations on machines still fail in passing
	failed map[string]bool // the machines on which the image or the conductor has let a deployment fail in this run
	ever   map[string]bool // the same in any run
	tries  int             // how often that has happened in this run
}

// goneImage is the address of an image that is not there.
const goneImage = "http://images.test/gone"

// passing are words for what passes by itself.
var passing = []string{
	"No free conductor workers available",
	"Redfish exception occurred. Error: HTTP GET https://b/redfish/v1 returned code 503. Base.1.0.GeneralError: Retry later.",
	"The %s state can't be resumed by conductor c1. Moving to fail state.",
	"Node n is locked by host c1, please retry after the current operation is completed.",
}

// fail is the fake's.
func (i *illness) fail(n fakeironic.Node, verb string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	info, _ := n.Raw["instance_info"].(object)
	image := fmt.Sprint(info["image_source"])
	deploys := verb == "active" || verb == "rebuild"
	switch {
	case i.kind == "passes" && i.left[n.UUID] > 0:
		i.left[n.UUID]--
		return strings.ReplaceAll(passing[(i.left[n.UUID]+int(n.UUID[len(n.UUID)-1]))%len(passing)], "%s", n.ProvisionState)
	case !deploys || i.mended:
	case i.kind == "image" && image == goneImage:
		i.failed[n.UUID], i.ever[n.UUID] = true, true
		i.tries++
		return "Validation of image href " + image + " failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request."
	case i.kind == "site":
		i.failed[n.UUID], i.ever[n.UUID] = true, true
		i.tries++
		return "Failed to deploy instance: Disk volume where '/var/lib/ironic' is located doesn't have enough disk space. Required 10 MiB, " +
			"only 3 MiB available space present."
	case i.broken[n.UUID]:
		return "Deploy step deploy.write_image failed on node n. Writing image to device /dev/sda failed with exit code 1."
	}
	return ""
}

// Failures have reasons: no machine is put into quarantine for what is not its fault, no run goes on with an image that is not there or on
// a conductor that is full, nothing is tainted to which nothing was sent, and what passes by itself needs no hand.
func TestSimulate_reasons(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveWithReasons(t, seed) })
		})
	}
}

func liveWithReasons(t *testing.T, seed uint64) {
	t.Helper()
	s := newSite(seed)
	defer s.check(t, fmt.Sprintf("seed %d", seed))
	ill := &illness{
		kind: []string{"image", "site", "disk", "passes"}[seed%4], broken: map[string]bool{}, left: map[string]int{},
		failed: map[string]bool{}, ever: map[string]bool{},
	}
	uses := 4 + s.below(2)
	s.fake.StepTime = 3 * time.Second
	s.fake.AddFleet(2*uses, fleetClass)
	for i, n := range s.fake.Nodes() {
		ill.broken[n.UUID] = ill.kind == "disk" && i%3 == 0 // so that enough are left
		ill.left[n.UUID] = s.below(4)
	}
	limit := 1 + s.below(2)
	w := s.workspace("w", object{"provisioning_limit": object{"max_concurrent": limit}})
	attempts := 1 + s.below(2)
	config := func(image string) configuration {
		all := configuration{}
		for i := range uses {
			name := fmt.Sprintf("u%d", i)
			all["metal_allocation."+name] = object{"name": name, "resource_class": fleetClass}
			all["metal_deployment."+name] = object{
				"node_id":       reference{"metal_allocation." + name, "node_id"},
				"allocation_id": reference{"metal_allocation." + name, "id"},
				"on_failure":    "quarantine", "max_nodes": 3, "max_attempts": attempts, "rollout": object{"max_failures": 0},
				"image": imageAt(image),
			}
		}
		return all
	}
	rebuilds := s.below(2) == 0
	if rebuilds {
		if w.apply(t, config("http://images.test/v1"), death{}).failed {
			s.broken("the first apply has failed")
		}
	}
	s.tell("illness %s, limit %d, of machines that run: %t", ill.kind, limit, rebuilds)
	s.fake.Fail = ill.fail
	for range 2 {
		ill.mu.Lock()
		clear(ill.failed)
		ill.tries = 0
		ill.mu.Unlock()
		end := w.apply(t, config(goneImage), death{})
		ill.check(s, w, end, limit)
		if !end.failed {
			break
		}
	}
	ill.mu.Lock()
	ill.mended = true
	ill.mu.Unlock()
	for tries := 0; w.apply(t, config(goneImage), death{}).failed; tries++ {
		if tries == uses {
			s.broken("the apply fails again and again")
			return
		}
	}
	if left := w.replan(t, config(goneImage)); !left.empty() {
		s.broken("the plan in the end is %s", left)
	}
}

// check checks how a run has ended on a site with an illness.
func (i *illness) check(s *site, w *workspace, end outcome, limit int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var retired []string
	for _, n := range s.fake.Nodes() {
		if n.Raw["retired"] == true && !i.broken[n.UUID] {
			retired = append(retired, n.Name)
		}
	}
	if len(retired) > 0 {
		slices.Sort(retired)
		s.broken("%v are in quarantine for the illness %q, which is not theirs", retired, i.kind)
	}
	if end.failed && i.kind == "passes" {
		s.broken("what passes by itself has let the run fail")
	}
	if most := 2 + limit; len(i.failed) > most {
		s.broken("the run has gone on after two failures: %d machines have failed for the illness %q", len(i.failed), i.kind)
	}
	if i.kind == "image" && i.tries > len(i.failed) {
		s.broken("%d deployments of an image that is not there on %d machines", i.tries, len(i.failed))
	}
	for address, now := range w.state() {
		if now.tainted && i.kind != "disk" && !i.ever[now.node()] {
			s.broken("%s is tainted, and no deployment on its machine has failed", address)
		}
	}
}
