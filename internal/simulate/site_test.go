package simulate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// site is a fake Ironic with everything that happens there. It is in the virtual time of one test.
type site struct {
	fake    *fakeironic.Server
	secrets []string // must not appear in anything that a provider says
	latency time.Duration
	fault   func(r *http.Request) *fault // decides about a request; nil: all are answered

	meddled bool // other clients have changed machines

	mu      sync.Mutex
	random  *rand.Rand
	started time.Time
	story   []string // what has happened, for people
	faults  []string // promises that were broken
	verbs   []sent
	limit   int // the highest number of machines that may have an operation of the runs in progress; 0: any
}

// sent is a verb or a change of power that Ironic has accepted from a run.
type sent struct {
	run, node, target string
}

// fault is what happens to a request besides being answered.
type fault struct {
	name  string
	after bool                  // it takes effect all the same
	delay time.Duration         // before it arrives
	with  *fakeironic.Rejection // the answer; nil: the connection breaks
}

var (
	errKilled = errors.New("the process was killed")
	errBroken = syscall.ECONNRESET
)

func newSite(seed uint64) *site {
	return &site{
		fake: &fakeironic.Server{StepTime: 20 * time.Second}, random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a test wants to repeat it
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

// line is the connection of one process to the site.
type line struct {
	site *site
	run  string
	dead chan struct{} // closed when the process is killed or has ended
	once sync.Once

	mu     sync.Mutex
	count  int  // requests so far
	killAt int  // which request kills the process; 0: none
	after  bool // it is killed when the request has been executed, but before it is answered
	killed bool
}

// end breaks the connection.
func (l *line) end() { l.once.Do(func() { close(l.dead) }) }

func (l *line) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// RoundTrip sends a request to the site, unless the process is dead or dies of it.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.isDead() {
		return nil, errKilled
	}
	var what *fault
	if l.site.fault != nil {
		what = l.site.fault(r)
	}
	if err := l.travel(r, what); err != nil {
		return nil, err
	}
	dies, after := l.number()
	if dies {
		l.site.tell("%s is killed at request %d: %s %s (executed: %t)", l.run, l.count, r.Method, r.URL.Path, after)
	}
	if dies && !after {
		l.end()
		return nil, errKilled
	}
	resp, err := l.site.answer(l.run, r, what)
	if dies {
		l.end()
	}
	if l.isDead() {
		return nil, errKilled
	}
	return resp, err
}

// number counts a request and reports whether the process dies of it.
func (l *line) number() (dies, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	dies = l.count == l.killAt
	l.killed = l.killed || dies
	return dies, l.after
}

// travel waits for the time that a request needs to arrive. A request of a killed process may arrive or not.
func (l *line) travel(r *http.Request, what *fault) error {
	delay := time.Duration(l.site.below(int(l.site.latency) + 1))
	if what != nil {
		delay += what.delay
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return r.Context().Err()
	case <-l.dead:
		if l.site.below(2) == 0 {
			return errKilled
		}
	}
	return nil
}

// answer lets the fake answer a request and watches what is accepted.
func (s *site) answer(run string, r *http.Request, what *fault) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if what != nil && !what.after && (what.with != nil || what.delay == 0) {
		s.tell("%s: %s %s: %s, not executed", run, r.Method, r.URL.Path, what.name)
		return what.answer(r)
	}
	resp, err := s.fake.RoundTrip(r.WithContext(withoutEnd{r.Context()}))
	if err == nil && r.Method != http.MethodGet {
		s.watch(run, r, body, resp.StatusCode)
	}
	if what != nil && what.after {
		s.tell("%s: %s %s: %s, though executed", run, r.Method, r.URL.Path, what.name)
		return what.answer(r)
	}
	return resp, err
}

// answer is the faulty answer.
func (f *fault) answer(r *http.Request) (*http.Response, error) {
	if f.with == nil {
		return nil, errBroken
	}
	return &http.Response{
		StatusCode: f.with.Status, Status: http.StatusText(f.with.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: f.with.Header.Clone(), Body: io.NopCloser(strings.NewReader(f.with.Body)), ContentLength: int64(len(f.with.Body)),
	}, nil
}

// watch records what a run has changed, and checks the limit when it has started an operation.
func (s *site) watch(run string, r *http.Request, body []byte, status int) {
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	s.tellWrite(run, r.Method, path, body, status)
	parts := strings.Split(path, "/")
	if status/100 != 2 || len(parts) < 4 || parts[0] != "nodes" || parts[2] != "states" || parts[3] != "provision" && parts[3] != "power" {
		return
	}
	var asked struct{ Target string }
	if err := json.Unmarshal(body, &asked); err != nil {
		s.broken("%s sent %q as a verb", run, body)
	}
	s.mu.Lock()
	s.verbs = append(s.verbs, sent{run, parts[1], asked.Target})
	s.mu.Unlock()
	s.checkLimit()
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
	"cleaning": true, "clean wait": true, "deploying": true, "wait call-back": true, "deleting": true, "inspecting": true, "inspect wait": true,
	"rescuing": true, "rescue wait": true, "unrescuing": true, "servicing": true, "service wait": true,
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
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://ironic.test/v1/"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Openstack-Ironic-Api-Version", "1.82")
	resp, err := s.fake.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer object
	_ = json.Unmarshal(text, &answer) // some answers are empty
	return resp.StatusCode, answer
}
