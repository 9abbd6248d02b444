package sharing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// Request identifies a request of a process: method and path with stars for IDs, and its number among requests of that name, from 1.
type Request struct {
	Name string
	Nth  int
}

var idInPath = regexp.MustCompile(`[0-9A-Za-z-]*[0-9][0-9A-Za-z-]*`)

// nameOf returns the name of a request, such as "DELETE /rest/server-profiles/*".
func nameOf(r *http.Request) string {
	path := r.URL.Path
	if len(path) > len("/v1/") { // v1 is not an ID
		path = path[:len("/v1/")] + idInPath.ReplaceAllString(path[len("/v1/"):], "*")
	}
	return r.Method + " " + path
}

// Mortal is a process that dies at a request, before it sends it or after the request has taken effect. The zero value does not die, and
// records its requests.
type Mortal struct {
	At    Request
	After bool
	Die   context.CancelFunc

	mu   sync.Mutex
	seen map[string]int
	Sent []Request
	dead bool
}

var errKilled = errors.New("killed")

// Through returns a transport to a server for the process.
func (m *Mortal) Through(next http.RoundTripper) http.RoundTripper { return mortalTransport{m, next} }

// String names the request at which the process dies.
func (m *Mortal) String() string {
	when := "before"
	if m.After {
		when = "after"
	}
	return fmt.Sprintf("killed %s %s, number %d", when, m.At.Name, m.At.Nth)
}

// meets counts a request. It reports whether the process dies at this request, and whether it has died before.
func (m *Mortal) meets(r *http.Request) (dies, dead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, true
	}
	if m.seen == nil {
		m.seen = map[string]int{}
	}
	name := nameOf(r)
	m.seen[name]++
	now := Request{name, m.seen[name]}
	m.Sent = append(m.Sent, now)
	m.dead = now == m.At
	return m.dead, false
}

type mortalTransport struct {
	m    *Mortal
	next http.RoundTripper
}

// RoundTrip sends the request unless the process is dead.
func (t mortalTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	dies, dead := t.m.meets(r)
	if !dies && !dead {
		return t.next.RoundTrip(r)
	}
	if dies && t.m.After {
		if resp, err := t.next.RoundTrip(r); err == nil {
			_ = resp.Body.Close()
		}
	}
	t.m.Die()
	return nil, errKilled
}

// EveryKill runs a story with a process that does not die, then with processes that die at each of the requests of the first one. These
// requests must include those named must.
func EveryKill(t *testing.T, must []string, story func(t *testing.T, m *Mortal)) {
	t.Helper()
	lives := &Mortal{}
	story(t, lives)
	for _, name := range must {
		if !slices.Contains(lives.Sent, Request{name, 1}) {
			t.Fatalf("there is no %s among the requests %v", name, lives.Sent)
		}
	}
	for _, at := range lives.Sent {
		for _, after := range []bool{false, true} {
			m := &Mortal{At: at, After: after}
			story(t, m)
			if !m.dead {
				t.Errorf("the process was not %s", m)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// run runs a story with a process that may die.
func (s *poolSite) run(t *testing.T, m *Mortal, work func(context.Context, *Pool)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.Die = cancel
	work(ctx, s.poolThrough(t, m.Through(s.ironic), m.Through(s.oneview)))
}
