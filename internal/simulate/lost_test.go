package simulate_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

var everything = flag.Bool("everything", false, "whether TestLost_everyKindOfRequest combines all scenes, requests and faults")

// lostAnswers are what a client sees of requests that Ironic executes. One that is late is executed only after that.
func lostAnswers() []*fault {
	html := http.Header{"Content-Type": {"text/html"}}
	timeout := &fakeironic.Rejection{Status: http.StatusGatewayTimeout, Header: html, Body: "<html>504 Gateway Time-out</html>"}
	return []*fault{
		{name: "dropped", after: true},
		{name: "504", after: true, with: timeout},
		{name: "504", late: 250 * time.Millisecond, with: timeout},
		{name: "502", late: 900 * time.Millisecond, with: &fakeironic.Rejection{Status: http.StatusBadGateway, Header: html, Body: "<html>502 Bad Gateway</html>"}},
	}
}

// course is what became of a scene.
type course struct {
	*site
	verbs    map[string]int // that Ironic has accepted
	requests []string       // kinds of requests that change something, in order
	work     []string       // what Ironic has worked on, by verb
	sight    sight
	states   sight // in Terraform
	failed   bool  // the first apply
}

// Every kind of request that changes something loses its answer once. What is left, what was sent to machines, and how often they
// started is the same as without a fault.
func TestLost_everyKindOfRequest(t *testing.T) {
	t.Parallel()
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			var calm course
			inVirtualTime(t, func(t *testing.T) { calm = sc.live(t, "", nil, "") })
			for _, kind := range calm.requests {
				for i, lost := range lostAnswers() {
					if !*everything && !strings.Contains(kind, "/states/") && hashOf(sc.name+kind)%len(lostAnswers()) != i {
						continue
					}
					t.Run(fmt.Sprintf("%s %s after %s", kind, lost.name, lost.late), func(t *testing.T) {
						inVirtualTime(t, func(t *testing.T) { sc.compare(t, calm, kind, lost) })
					})
				}
			}
			for _, verb := range calm.work {
				t.Run("failed "+verb, func(t *testing.T) {
					inVirtualTime(t, func(t *testing.T) { sc.fail(t, calm, verb) })
				})
			}
		})
	}
}

func hashOf(text string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return int(h.Sum32() >> 1)
}

// requestKind names a request without what differs between two lives.
func requestKind(r *http.Request, target string) string {
	return strings.TrimSpace(r.Method + " " + uuids.ReplaceAllString(strings.TrimPrefix(r.URL.Path, "/v1/"), "*") + " " + target)
}

// settled is how many applies may follow the one with the fault.
const settled = 3

// live lives a scene. The first request of a kind meets a fault, and the first work on a verb fails.
func (sc scene) live(t *testing.T, kind string, lost *fault, failing string) course {
	t.Helper()
	s := newSite(1)
	s.secrets = []string{secret}
	s.latency = time.Millisecond
	s.fake.MaxMicroversion = sc.newest
	if sc.to["metal_allocation_group.a"] != nil {
		s.fake.AddFleet(groupNodes, fleetClass)
	}
	title := fmt.Sprintf("%s, %s", sc.name, kind+failing)
	if lost != nil {
		title += fmt.Sprintf(", %s after %s", lost.name, lost.late)
	}
	t.Cleanup(func() { s.check(t, title) })
	w := s.workspace("w", nil)
	for _, config := range sc.from {
		if w.apply(t, config, death{}).failed {
			s.broken("the apply before the scene has failed")
			return course{site: s}
		}
	}
	s.forget()
	c := course{site: s, verbs: map[string]int{}, states: sight{}}
	c.observe(kind, lost, failing)
	c.failed = w.apply(t, sc.to, death{}).failed
	s.fault = nil
	<-time.After(10 * time.Second) // until what was late has arrived
	for range settled {
		if end := w.apply(t, sc.to, death{}); end.plan.empty() {
			break
		}
		s.repair(t)
	}
	if left := w.replan(t, sc.to); !left.empty() {
		s.broken("the plan in the end is %s", left)
	}
	for _, v := range s.verbsOf() {
		node, _ := s.fake.Node(v.node)
		c.verbs[node.Name+" "+v.target]++
	}
	for address, i := range w.state() {
		for name, value := range i.value.AsValueMap() {
			if name != "boot_status" && name != "attempts" { // what the last apply did
				c.states[address+" "+name] = unique(show(value))
			}
		}
	}
	c.sight = s.see(t)
	if s.hasLock(t) { // as that of a killed run
		later := laterHost()
		if sc.to["metal_allocation_group.a"] != nil {
			later = groupOf("later", 1)
		}
		s.lockOnceMore(t, later)
	}
	s.checkClean(t)
	return c
}

// observe notes the requests and the work of a scene, and lets one of them fail.
func (c *course) observe(kind string, lost *fault, failing string) {
	var lock sync.Mutex
	c.fault = func(r *http.Request) *fault {
		lock.Lock()
		defer lock.Unlock()
		name := requestKind(r, targetOf(r))
		if r.Method != http.MethodGet && !slices.Contains(c.requests, name) {
			c.requests = append(c.requests, name)
			if name == kind {
				return lost
			}
		}
		return nil
	}
	failed := false
	c.fake.Fail = func(_ fakeironic.Node, verb string) string {
		lock.Lock()
		defer lock.Unlock()
		if !slices.Contains(c.work, verb) {
			c.work = append(c.work, verb)
		}
		if verb != failing || failed {
			return ""
		}
		failed = true
		return "The BMC does not answer."
	}
}

// compare lives a scene in which an answer is lost, and compares it with the calm course.
func (sc scene) compare(t *testing.T, calm course, kind string, lost *fault) {
	t.Helper()
	now := sc.live(t, kind, lost, "")
	if !maps.Equal(now.verbs, calm.verbs) {
		now.broken("the machines were sent %v, want %v", now.verbs, calm.verbs)
	}
	if text := now.sight.differences(calm.sight); text != "" {
		now.broken("with a lost answer %s", text)
	}
	if text := now.states.differences(calm.states); text != "" {
		now.broken("with a lost answer, in the state %s", text)
	}
}

// fail lives a scene in which Ironic accepts a verb and fails to execute it. An apply without an error has repeated it.
func (sc scene) fail(t *testing.T, calm course, verb string) {
	t.Helper()
	now := sc.live(t, "", nil, verb)
	for name, n := range calm.verbs {
		if strings.HasSuffix(name, " "+verb) && !now.failed && now.verbs[name] <= n {
			now.broken("the apply has no error, though %s failed once and was sent %d times", name, now.verbs[name])
		}
	}
	for key, value := range calm.sight {
		if now.sight[key] != value && !strings.HasSuffix(key, " starts") {
			now.broken("after a failed %s, %s is %s, not %s", verb, key, orNothing(now.sight[key]), value)
		}
	}
}
