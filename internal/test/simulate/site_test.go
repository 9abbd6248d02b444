package simulate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// site is a fake Ironic with everything that happens there. It is in the virtual time of one test.
type site struct {
	fake *fakeironic.Server

	appliance *fakeoneview.Server // nil: there is none

	secrets []string // must not appear in anything that a provider says
	latency time.Duration
	fault   func(r *http.Request) *fault // decides about a request; nil: all are answered

	only    string // the only kind of trouble; "": all but the weather
	weather weather

	released atomic.Bool // a warning has said that an allocation is gone
	meddled  bool        // other clients have changed machines
	census   *census     // counts what happens; nil: nothing is counted
	members  *members    // of a rollout group; nil: there is none
	rack     *rack       // of machines that must not change hands; nil: there is none

	mu      sync.Mutex
	random  *rand.Rand
	started time.Time
	story   []string // what has happened, for people
	faults  []string // promises that were broken
	verbs   []sent
	history []sent // of all runs, which forget keeps
	systems systems
	played  plays
	listed  map[string][]byte // the last right answer to a request for a list, by its run and URL
	limit   int               // the highest number of machines that may have an operation of the runs in progress; 0: any
}

// sent is a verb or a change of power that Ironic has accepted from a run.
type sent struct {
	run, node, target string
	state, power      string // of the node, before
}

// The hosts that exist.
const (
	siteHost  = "ironic.test"
	imageHost = "images.test"

	oneviewHost = "oneview.test"
)

func newSite(seed uint64) *site {
	return &site{
		fake:    &fakeironic.Server{StepTime: 20 * time.Second},
		random:  rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a test wants to repeat it
		latency: 20 * time.Millisecond, started: time.Now(),
	}
}

// tell adds a line to the story.
func (s *site) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story = append(s.story, fmt.Sprintf("%9.1fs  ", time.Since(s.started).Seconds())+fmt.Sprintf(format, args...))
}

// broken records that a promise was broken.
func (s *site) broken(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.tell("BROKEN: %s", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

// below returns a random number below n.
func (s *site) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// check fails the test with the story if a promise was broken.
func (s *site) check(t *testing.T, title string) bool {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) == 0 {
		return true
	}
	t.Errorf("%s: %s\n%s", title, strings.Join(s.faults, "\n"), strings.Join(s.story, "\n"))
	return false
}

// watch records what a run has changed, and checks the limit when it has started an operation. verb is nil if the request has none.
func (s *site) watch(run string, r *http.Request, body []byte, status int, verb *sent) {
	s.tellWrite(run, r.Method, strings.TrimPrefix(r.URL.Path, "/v1/"), body, status)
	if status/100 != 2 || verb == nil {
		return
	}
	s.mu.Lock()
	s.verbs = append(s.verbs, *verb)
	s.history = append(s.history, *verb)
	s.systems.start(*verb)
	s.mu.Unlock()
	s.played.add(verbPrefix + verb.target)
	s.census.add(verbPrefix + verb.target)
	s.checkLimit()
	s.checkBMC(*verb)
	s.rack.reach(s, *verb)
	s.checkTurn(*verb)
}

// verbIn returns the verb or the change of power in a request; nil if there is none.
func (s *site) verbIn(run string, r *http.Request, body []byte) *sent {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if r.Method != http.MethodPut || len(parts) < 4 || parts[0] != "nodes" || parts[2] != "states" || parts[3] != "provision" &&
		parts[3] != "power" {
		return nil
	}
	node, _ := s.fake.Node(parts[1])
	return &sent{run, node.UUID, targetIn(body), node.ProvisionState, node.PowerState}
}

// targetIn returns the target in the body of a request; "" if there is none.
func targetIn(body []byte) string {
	var asked struct{ Target string }
	_ = json.Unmarshal(body, &asked) // a list has none
	return asked.Target
}

// targetOf is targetIn of a request that is still to be sent.
func targetOf(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	again, err := r.GetBody()
	if err != nil {
		return ""
	}
	body, _ := io.ReadAll(again)
	return targetIn(body)
}

// tellWrite adds a request that changes something to the story, without repetitions.
func (s *site) tellWrite(run, method, path string, body []byte, status int) {
	switch {
	case !strings.HasPrefix(path, "chassis"):
		s.tell("%s: %s %s %s -> %d", run, method, path, shortened(body), status)
	case status/100 == 2:
		s.tell("%s: lock: %s %s", run, method, path)
	}
}

func shortened(body []byte) string {
	const most = 200
	if len(body) > most {
		return string(body[:most]) + "..."
	}
	return string(body)
}

// busyStates are the states in which a machine boots or writes.
var busyStates = map[string]bool{
	"cleaning": true, "clean wait": true, "deploying": true, "wait call-back": true, "deleting": true, "inspecting": true,
	"inspect wait": true,
	"rescuing":     true, "rescue wait": true, "unrescuing": true, "servicing": true, "service wait": true,
}

// checkLimit counts the machines on which the runs have an operation in progress.
func (s *site) checkLimit() {
	if s.limit == 0 {
		return
	}
	ours := map[string]bool{}
	s.mu.Lock()
	for _, v := range s.verbs {
		ours[v.node] = v.run != ""
	}
	s.mu.Unlock()
	busy := []string{}
	for _, n := range s.fake.Nodes() {
		if ours[n.UUID] && busyStates[n.ProvisionState] {
			busy = append(busy, n.Name+" "+n.ProvisionState)
		}
	}
	if len(busy) > s.limit {
		s.broken("%d machines have an operation in progress, the limit is %d: %s", len(busy), s.limit, strings.Join(busy, ", "))
	}
}

// forget forgets the verbs so far.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verbs = nil
}

// call makes a request of another client, and returns the answer.
func (s *site) call(t *testing.T, method, path string, body any) (int, object) {
	t.Helper()
	status, answer, err := s.send(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// send is call outside of a test.
func (s *site) send(method, path string, body any) (status int, answer object, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://ironic.test/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Openstack-Ironic-Api-Version", "1.82")
	req.SetBasicAuth(s.fake.Username, s.fake.Password)
	resp, err := s.fake.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	if text, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, err
	}
	_ = json.Unmarshal(text, &answer) // some answers are empty
	return resp.StatusCode, answer, nil
}
