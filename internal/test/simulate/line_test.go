package simulate_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// fault is what happens to a request besides being answered.
type fault struct {
	name  string
	after bool                  // it takes effect all the same
	delay time.Duration         // before it arrives
	late  time.Duration         // between the answer and the effect
	with  *fakeironic.Rejection // the answer; nil: the connection breaks
	list  bool                  // the answer is a list that is wrong, as the name says
}

var (
	errKilled = errors.New("the process was killed")
	errBroken = syscall.ECONNRESET
)

// line is the connection of one process to the site.
type line struct {
	site *site
	run  string
	dead chan struct{} // closed when the process is killed or has ended
	once sync.Once

	mu       sync.Mutex
	count    int      // requests so far, or moments
	killAt   int      // which of them kills the process; 0: none
	moments  *moments // nil: requests are counted
	killVerb string   // the verb before which it is killed; "": none
	after    bool     // it is killed when the request has been executed, but before it is answered
	killed   bool
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
	if r.URL.Host == siteHost && l.site.weather.isSilent(l.run) {
		return nil, errBroken
	}
	var what *fault
	if l.site.fault != nil {
		what = l.site.fault(r)
	}
	if err := l.travel(r, what); err != nil {
		return nil, err
	}
	if r.URL.Host != siteHost && r.URL.Host != imageHost && (r.URL.Host != oneviewHost || l.site.appliance == nil) {
		l.site.broken("%s: %s %s was sent to another host", l.run, r.Method, r.URL)
		l.end()
		return nil, errKilled
	}
	if r.URL.Host == imageHost {
		return (&fault{with: &fakeironic.Rejection{Status: http.StatusOK}}).answer(r)
	}
	dies, after := l.number(r)
	if dies {
		l.site.tell("%s is killed at %d: %s %s (executed: %t)", l.run, l.count, r.Method, r.URL.Path, after)
	}
	if dies && !after {
		l.end()
		return nil, errKilled
	}
	resp, err := l.site.answer(l.run, r, what)
	if err == nil && r.URL.Host == siteHost {
		l.site.date(resp)
	}
	if dies {
		l.end()
	}
	if l.isDead() {
		return nil, errKilled
	}
	return resp, err
}

// number counts a request and reports whether the process dies of it.
func (l *line) number(r *http.Request) (dies, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moments == nil || l.moments.begins(l.site, r, l.after) {
		l.count++
		dies = l.count == l.killAt
	}
	dies = dies || l.killVerb != "" && targetOf(r) == l.killVerb
	l.killed = l.killed || dies
	return dies, l.after
}

// travel waits for the time that a request needs to arrive. A request of a killed process may arrive or not.
func (l *line) travel(r *http.Request, what *fault) error {
	delay := time.Duration(l.site.below(int(l.site.latency+l.site.weather.delay()) + 1))
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
	if what != nil && what.late > 0 {
		s.tell("%s: %s %s: %s, executed after %s", run, r.Method, r.URL.Path, what.name, what.late)
		time.AfterFunc(what.late, func() { _, _ = s.execute(run, r, body) })
		return what.answer(r)
	}
	if what != nil && !what.after && !what.list && (what.with != nil || what.delay == 0) {
		s.tell("%s: %s %s: %s, not executed", run, r.Method, r.URL.Path, what.name)
		return what.answer(r)
	}
	resp, err := s.execute(run, r, body)
	if s.fault != nil && err == nil {
		s.spoil(run, r, resp, what)
	}
	if what != nil && what.after {
		s.tell("%s: %s %s: %s, though executed", run, r.Method, r.URL.Path, what.name)
		return what.answer(r)
	}
	return resp, err
}

// execute lets the fake execute a request.
func (s *site) execute(run string, r *http.Request, body []byte) (*http.Response, error) {
	sent := s.verbIn(run, r, body)
	r = r.WithContext(withoutEnd{r.Context()})
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.URL.Host == oneviewHost {
		return s.appliance.RoundTrip(r)
	}
	resp, err := s.fake.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet {
		s.watch(run, r, body, resp.StatusCode, sent)
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
