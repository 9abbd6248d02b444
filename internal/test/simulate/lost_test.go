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

var everything = flag.Bool("everything", false, "whether TestLost combines all scenes, requests and faults, TestKill kills at every "+
	"request, and TestTwins and TestStop try more")

// lostAnswers are what a client sees of requests that Ironic executes. One that is late is executed only after that.
func lostAnswers() []*fault {
	html := http.Header{"Content-Type": {"text/html"}}
	timeout := &fakeironic.Rejection{Status: http.StatusGatewayTimeout, Header: html, Body: "<html>504 Gateway Time-out</html>"}
	return []*fault{
		{name: "dropped", after: true},
		{name: "504", after: true, with: timeout},
		{name: "504", late: 250 * time.Millisecond, with: timeout},
		{name: "502", late: 900 * time.Millisecond, with: &fakeironic.Rejection{
			Status: http.StatusBadGateway, Header: html,
			Body: "<html>502 Bad Gateway</html>",
		}},
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
			all = append(all, &fault{name: fmt.Sprintf("%d to %s", status, to), with: &fakeironic.Rejection{
				Status: status,
				Header: http.Header{"Location": {to}},
			}})
		}
	}
	return all
}

// revocations are the answers to a user whose role was revoked.
func revocations() (all []*fault) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		all = append(all, &fault{
			name: fmt.Sprint(status),
			with: ironictest.Fault(status, "Node could not be found, or access to it was denied."),
		})
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
	played   map[string]bool
	settles  bool // what the scene is about has ended
}

// calmLife is a scene without a mishap.
type calmLife struct {
	once sync.Once
	course
}

// calmLives are those of all scenes, by name.
var calmLives sync.Map

// calmly returns what becomes of a scene without a mishap. Tests share it.
func calmly(t *testing.T, sc scene) course {
	t.Helper()
	found, _ := calmLives.LoadOrStore(sc.name, &calmLife{})
	life, _ := found.(*calmLife)
	life.once.Do(func() { inVirtualTime(t, func(t *testing.T) { life.course = sc.live(t, mishap{}) }) })
	return life.course
}

// Every kind of request that changes something loses its answer once. What is left, what was sent to machines, and how often they
// started is the same as without a fault.
func TestLost_everyKindOfRequest(t *testing.T) {
	t.Parallel()
	all := scenes()
	for number, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			creation := calmly(t, all[1])
			calm := calmly(t, sc)
			for _, m := range sc.mishaps(number, calm, creation) {
				t.Run(m.String(), func(t *testing.T) {
					inVirtualTime(t, func(t *testing.T) { sc.compare(calm, sc.live(t, m), m) })
				})
			}
		})
	}
}

// mishaps are those that a scene meets. Without -everything each request that changes something loses its answer in one of the four ways,
// and one that moves a machine in two: at once, and late. All four, and each redirect, still occur in many scenes. A scene of details meets
// only some of what every creation meets.
func (sc scene) mishaps(number int, calm, creation course) (all []mishap) {
	for _, kind := range calm.requests {
		chance, moves := hashOf(sc.name+kind), strings.Contains(kind, "/states/")
		if sc.isRare(kind, creation.requests) || strings.Contains(kind, " chassis") && sc.isRare(kind, []string{kind}) {
			continue
		}
		for i, lost := range lostAnswers() {
			ways := len(lostAnswers())
			tried := *everything || chance%ways == i || moves && !sc.detail && (chance+ways/2)%ways == i
			if tried {
				all = append(all, mishap{kind: kind, lost: lost})
			}
		}
		for i, revoked := range revocations() {
			tried := chance%len(revocations()) == i && (!sc.detail || chance%2 == 0)
			if moves && (*everything || tried) {
				all = append(all, mishap{kind: kind, revoked: revoked})
			}
		}
	}
	for _, verb := range calm.work {
		if !sc.isRare("failed "+verb, prefixed("failed ", creation.work)) {
			all = append(all, mishap{failing: verb})
		}
	}
	for _, verb := range calm.long {
		if !sc.isRare("deserted "+verb, prefixed("deserted ", creation.long)) {
			all = append(all, mishap{deserted: verb})
		}
	}
	for i, redirect := range redirects() {
		if *everything || !sc.detail && number%len(redirects()) == i && number/len(redirects()) == i%3 {
			all = append(all, mishap{redirect: redirect})
		}
	}
	return all
}

// isRare reports whether a scene of details does not meet a mishap that others meet, too.
func (sc scene) isRare(what string, others []string) bool {
	const oneIn = 6
	return sc.detail && !*everything && slices.Contains(others, what) && hashOf(sc.name+what)%oneIn > 0
}

func prefixed(prefix string, all []string) (made []string) {
	for _, one := range all {
		made = append(made, prefix+one)
	}
	return made
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
	s.secrets = []string{secret, userSecret}
	s.latency = time.Millisecond
	s.fake.MaxMicroversion = sc.newest
	if sc.usesFleet() {
		s.fake.AddFleet(groupNodes, fleetClass)
	}
	t.Cleanup(func() { s.check(t, fmt.Sprintf("%s, %s", sc.name, m)) })
	if sc.prepare != nil {
		sc.prepare(s)
	}
	w := s.workspace("w", sc.block)
	for _, config := range sc.from {
		if w.apply(t, config, death{}).failed {
			s.broken("the apply before the scene has failed")
			return course{site: s}
		}
	}
	if sc.before != nil {
		sc.before(s)
	}
	s.forget()
	c := course{site: s, verbs: map[string]int{}, states: sight{}}
	c.observe(m)
	begun := time.Now()
	c.failed = sc.happen(t, w)
	c.took, s.fault = time.Since(begun), nil
	if m.deserted != "" {
		s.restartConductor()
	}
	<-time.After(10 * time.Second) // until what was late has arrived
	c.settles = true
	if sc.act != nil && c.failed && m.revoked == nil {
		s.repair(t)
		sc.happen(t, w) // the user tries again
	}
	sc.settle(t, w)
	c.look(t, w)
	if s.hasLock(t) { // as that of a killed run
		later := laterHost()
		if sc.usesFleet() {
			later = groupOf("later", 1)
		}
		s.lockOnceMore(t, later)
	}
	if m.revoked == nil { // otherwise marks stay as after a kill
		s.checkClean(t)
	}
	return c
}

// usesFleet reports whether a scene needs a fleet, for a group.
func (sc scene) usesFleet() bool {
	return sc.to["metal_allocation_group.a"]["resource_class"] == fleetClass
}

// settle applies the configuration until nothing is left to do.
func (sc scene) settle(t *testing.T, w *workspace) {
	t.Helper()
	var left *plan
	for range settled + 1 {
		if left = w.apply(t, sc.to, death{}).plan; left.empty() {
			return
		}
		if sc.to["metal_host.a"]["maintenance"] == nil {
			w.site.repair(t)
		}
	}
	w.site.broken("the plan in the end is %s", left)
}

// look looks at what there is in the end.
func (c *course) look(t *testing.T, w *workspace) {
	t.Helper()
	for _, v := range c.verbsOf() {
		node, _ := c.fake.Node(v.node)
		c.verbs[unique(node.Name)+" "+v.target]++
	}
	for address, i := range w.state() {
		c.site.played.addValue(kindName(address), i.value, false)
		for name, value := range i.value.AsValueMap() {
			if name != "boot_status" && name != "attempts" { // what the last apply did
				c.states[address+" "+name] = unique(core.Show(value))
			}
		}
	}
	c.sight, c.played = c.see(t), c.site.played.names()
	if c.appliance != nil && len(c.appliance.Harm()) > 0 {
		c.broken("other users of the appliance were harmed: %v", c.appliance.Harm())
	}
}

// happen does what a scene is about. It reports whether that has failed.
func (sc scene) happen(t *testing.T, w *workspace) (failed bool) {
	t.Helper()
	if sc.act == nil {
		return w.apply(t, sc.to, death{}).failed
	}
	return w.do(t, sc.act)
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
			return &fault{name: m.redirect.name, with: &fakeironic.Rejection{
				Status: m.redirect.with.Status,
				Header: http.Header{"Location": {to}},
			}}
		}
		return nil
	}
	failed := false
	c.fake.Fail = func(_ fakeironic.Node, verb string) string {
		lock.Lock()
		defer lock.Unlock()
		if !c.settles && !slices.Contains(c.work, verb) {
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
		if !c.settles && !slices.Contains(c.long, verb) {
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
		now.checkSpared(calm, sc.act != nil)
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
// may be booted again. What a user has not asked for again may be left out.
func (c course) checkSpared(calm course, once bool) {
	rescues := func(key string, _ int) bool { return strings.HasSuffix(key, " rescue") }
	was, is := maps.Clone(calm.verbs), maps.Clone(c.verbs)
	maps.DeleteFunc(was, rescues)
	maps.DeleteFunc(is, rescues)
	if once {
		maps.DeleteFunc(was, func(key string, _ int) bool { return is[key] == 0 })
	}
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
