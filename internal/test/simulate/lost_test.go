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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
)

var everything = flag.Bool("everything", false, "whether TestLost combines all scenes, requests and faults, TestKill kills at every request, and TestTwins and TestStop try more")

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

// mishap is what goes wrong once in a scene.
type mishap struct {
	kind     string // of the request that meets
	lost     *fault // this fault
	failing  string // the verb on which the first work of Ironic fails
	deserted string // the verb whose first operation loses its conductor
	redirect *fault // the answer to all requests that change something
	revoked  *fault // the answer to all requests after the first of the kind, until the apply has ended
}

// String names the mishap.
func (m mishap) String() string {
	switch {
	case m.lost != nil:
		return fmt.Sprintf("%s %s after %s", m.kind, m.lost.name, m.lost.late)
	case m.redirect != nil:
		return m.redirect.name
	case m.revoked != nil:
		return m.revoked.name + " after " + m.kind
	case m.failing != "":
		return "failed " + m.failing
	case m.deserted != "":
		return m.deserted + " without a conductor"
	}
	return "calm"
}

// redirects are the answers of a server that wants requests at another address.
func redirects() (all []*fault) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusPermanentRedirect} {
		for _, to := range []string{"https://" + siteHost, "http://other.test"} {
			all = append(all, &fault{name: fmt.Sprintf("%d to %s", status, to), with: &fakeironic.Rejection{Status: status, Header: http.Header{"Location": {to}}}})
		}
	}
	return all
}

// revocations are the answers to a user whose role was revoked.
func revocations() (all []*fault) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		all = append(all, &fault{name: fmt.Sprint(status), with: ironictest.Fault(status, "Node could not be found, or access to it was denied.")})
	}
	return all
}

// course is what became of a scene.
type course struct {
	*site
	verbs    map[string]int // that Ironic has accepted
	requests []string       // kinds of requests that change something, in order
	work     []string       // what Ironic has worked on, by verb
	long     []string       // those of the verbs that change a provision state
	took     time.Duration  // the apply
	sight    sight
	states   sight // in Terraform
	failed   bool  // the first apply
}

// Every kind of request that changes something loses its answer once. What is left, what was sent to machines, and how often they
// started is the same as without a fault.
func TestLost_everyKindOfRequest(t *testing.T) {
	t.Parallel()
	for number, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			var calm course
			inVirtualTime(t, func(t *testing.T) { calm = sc.live(t, mishap{}) })
			for _, m := range sc.mishaps(number, calm) {
				t.Run(m.String(), func(t *testing.T) {
					inVirtualTime(t, func(t *testing.T) { sc.compare(calm, sc.live(t, m), m) })
				})
			}
		})
	}
}

// mishaps are those that a scene meets. Without -everything each request that changes something loses its answer in one of the four ways,
// and one that moves a machine in two: at once, and late. All four, and each redirect, still occur in many scenes.
func (sc scene) mishaps(number int, calm course) (all []mishap) {
	for _, kind := range calm.requests {
		chance, moves := hashOf(sc.name+kind), strings.Contains(kind, "/states/")
		for i, lost := range lostAnswers() {
			ways := len(lostAnswers())
			if *everything || chance%ways == i || moves && (chance+ways/2)%ways == i {
				all = append(all, mishap{kind: kind, lost: lost})
			}
		}
		for i, revoked := range revocations() {
			if moves && (*everything || chance%len(revocations()) == i) {
				all = append(all, mishap{kind: kind, revoked: revoked})
			}
		}
	}
	for _, verb := range calm.work {
		all = append(all, mishap{failing: verb})
	}
	for _, verb := range calm.long {
		all = append(all, mishap{deserted: verb})
	}
	for i, redirect := range redirects() {
		if *everything || number == i*len(scenes())/len(redirects()) {
			all = append(all, mishap{redirect: redirect})
		}
	}
	return all
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

// live lives a scene with a mishap.
func (sc scene) live(t *testing.T, m mishap) course {
	t.Helper()
	s := newSite(1)
	s.secrets = []string{secret}
	s.latency = time.Millisecond
	s.fake.MaxMicroversion = sc.newest
	if sc.to["metal_allocation_group.a"] != nil {
		s.fake.AddFleet(groupNodes, fleetClass)
	}
	t.Cleanup(func() { s.check(t, fmt.Sprintf("%s, %s", sc.name, m)) })
	w := s.workspace("w", nil)
	for _, config := range sc.from {
		if w.apply(t, config, death{}).failed {
			s.broken("the apply before the scene has failed")
			return course{site: s}
		}
	}
	s.forget()
	c := course{site: s, verbs: map[string]int{}, states: sight{}}
	c.observe(m)
	begun := time.Now()
	c.failed = w.apply(t, sc.to, death{}).failed
	c.took, s.fault = time.Since(begun), nil
	if m.deserted != "" {
		s.restartConductor()
	}
	<-time.After(10 * time.Second) // until what was late has arrived
	for range settled {
		if end := w.apply(t, sc.to, death{}); end.plan.empty() {
			break
		}
		if sc.to["metal_host.a"]["maintenance"] == nil {
			s.repair(t)
		}
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
				c.states[address+" "+name] = unique(core.Show(value))
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
	if m.revoked == nil { // otherwise marks stay as after a kill
		s.checkClean(t)
	}
	return c
}

// observe notes the requests and the work of a scene, and lets one of them fail.
func (c *course) observe(m mishap) {
	var lock sync.Mutex
	revoked := false
	c.fault = func(r *http.Request) *fault {
		lock.Lock()
		defer lock.Unlock()
		if revoked {
			return m.revoked
		}
		name := requestKind(r, targetOf(r))
		revoked = m.revoked != nil && name == m.kind
		if r.Method != http.MethodGet && !slices.Contains(c.requests, name) {
			c.requests = append(c.requests, name)
			if name == m.kind {
				return m.lost
			}
		}
		if m.redirect != nil && r.Method != http.MethodGet && r.URL.Scheme == "http" {
			to := m.redirect.with.Header.Get("Location") + r.URL.RequestURI()
			return &fault{name: m.redirect.name, with: &fakeironic.Rejection{Status: m.redirect.with.Status, Header: http.Header{"Location": {to}}}}
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
		if verb != m.failing || failed {
			return ""
		}
		failed = true
		return "The BMC does not answer."
	}
	deserted := false
	c.fake.Abandons = func(_ fakeironic.Node, verb string) bool {
		lock.Lock()
		defer lock.Unlock()
		if !slices.Contains(c.long, verb) {
			c.long = append(c.long, verb)
		}
		now := verb == m.deserted && !deserted
		deserted = deserted || now
		return now
	}
}

// compare compares what became of a scene with a mishap with the calm course.
func (sc scene) compare(calm, now course, m mishap) {
	switch {
	case now.sight == nil:
	case m.failing != "":
		now.checkRepeated(calm, m.failing)
	case m.deserted != "":
		now.checkRepeated(calm, m.deserted)
		if now.took > calm.took+5*time.Minute {
			now.broken("the apply waited for %s for an operation that had lost its conductor", now.took)
		}
	case m.revoked != nil:
		now.checkSpared(calm)
	default:
		if !maps.Equal(now.verbs, calm.verbs) {
			now.broken("the machines were sent %v, want %v", now.verbs, calm.verbs)
		}
		if text := now.sight.differences(calm.sight); text != "" {
			now.broken("in the end %s", text)
		}
		if text := now.states.differences(calm.states); text != "" {
			now.broken("in the state %s", text)
		}
		if m.redirect != nil && !now.failed {
			now.broken("requests were redirected, and the apply has not failed")
		}
	}
}

// checkSpared checks that no machine was deployed, rebuilt, undeployed or cleaned more often than without a revocation. A rescue system
// may be booted again.
func (c course) checkSpared(calm course) {
	rescues := func(key string, _ int) bool { return strings.HasSuffix(key, " rescue") }
	was, is := maps.Clone(calm.verbs), maps.Clone(c.verbs)
	maps.DeleteFunc(was, rescues)
	maps.DeleteFunc(is, rescues)
	if !maps.Equal(was, is) {
		c.broken("the machines were sent %v, want %v", is, was)
	}
}

// checkRepeated checks what became of a scene in which Ironic accepted a verb and failed to execute it. An apply without an error has
// repeated it, or done something else for it.
func (c course) checkRepeated(calm course, verb string) {
	if !c.failed && maps.Equal(c.verbs, calm.verbs) {
		c.broken("the apply has no error, though %s failed once and nothing was repeated: %v", verb, c.verbs)
	}
	for key, value := range calm.sight {
		if c.sight[key] != value && !strings.HasSuffix(key, " starts") {
			c.broken("after a failed %s, %s is %s, not %s", verb, key, orNothing(c.sight[key]), value)
		}
	}
}
