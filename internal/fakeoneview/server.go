// Package fakeoneview is an HPE OneView appliance in memory: sessions, server hardware, server profile templates, server
// profiles and tasks. It advances with the clock and refuses what the real appliance refuses. Tests and the fakeoneview program
// share it.
//
// Besides the REST API it has methods that act as another user of the appliance (TakeHardware, EditProfile, ...), faults that
// tests inject, and a log of harm: what clients did to another user's profiles and to the power of their servers.
//
// It follows HPE's documentation, captured answers and the SDKs. It knows nothing about its clients. Comments say where the
// behaviour of a real appliance is not known; clients must not depend on it there.
package fakeoneview

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Server is one appliance. Its zero value has no hardware and accepts every login. Callers must not change the fields while the
// Server answers requests. A Server is safe for concurrent use and starts no goroutine: each request first runs the events that
// were due before it, each with the time at which it was due.
type Server struct {
	// CurrentVersion and MinimumVersion are the ends of the range of X-API-Version; zero means 8600 and 300. The range must
	// not begin below 200, the first version with templates.
	CurrentVersion, MinimumVersion int

	// Username, Password and Domain are the only account. With an empty Username every login succeeds; an empty Domain means
	// LOCAL.
	Username, Password, Domain string

	// LoginMessage makes a login without loginMsgAck fail.
	LoginMessage bool

	// SessionLimit is the highest number of open sessions; zero means 960.
	SessionLimit int

	// IdleTimeout ends a session without requests for this time; zero means 24 hours.
	IdleTimeout time.Duration

	// StepTime is the duration of each state of a task: New, Starting, Running. With zero a task has ended by the next
	// request, unless a hook runs meanwhile.
	StepTime time.Duration

	// PageLimit lowers the highest number of members on a page. Zero means the appliance's limits: 64 profiles or templates,
	// 256 of other resources.
	PageLimit int

	// EmptyProfileURI shows a missing serverProfileUri as "" instead of null.
	EmptyProfileURI bool

	// LateProfileURI shows serverProfileUri on the hardware when the profile is applied, instead of when it is created. It is
	// not known which of the two real appliances do.
	LateProfileURI bool

	// SpellURI, if set, changes the spelling of URIs in resources, for example letter case or a slash at the end. In requests
	// the appliance accepts all such spellings.
	SpellURI func(uri string) string

	// PlainConflicts answers 409 instead of failing the task if the server is on or has a profile.
	PlainConflicts bool

	// MissingIfMatch is the status for a DELETE or PUT without If-Match from API version 500 on; zero means 403, as the
	// documentation says. 412 has been observed.
	MissingIfMatch int

	mu       sync.Mutex
	now      time.Time // time of the event or request that the server handles
	downTill time.Time // until then the restarting appliance answers 503
	events   eventQueue
	sequence int

	faults   []*injected
	requests []Request
	harm     []string
	sessions map[string]*session

	hardware   []*hardware // each list in order of creation
	templates  []*template
	profiles   []*profile
	tasks      []*task
	types      []named      // server hardware types
	groups     []named      // enclosure groups
	operations []*operation // all, including those that have ended
	held       []*operation // operations that wait for a number of requests (SlowTask)
}

// Request is one logged request.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Query  string // raw
	Status int    // 0 if the answer was dropped
	Body   string
}

// Reply is a complete answer.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte

	// Drop breaks the connection instead of answering.
	Drop bool
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := s.exchange(r)
	if answer.Drop {
		panic(http.ErrAbortHandler)
	}
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // fails only if the client has gone
}

// RoundTrip answers one request without a socket. It makes the Server an http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := s.exchange(r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if answer.Drop {
		return nil, syscall.ECONNRESET
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status)),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        answer.Header,
		Body:          io.NopCloser(bytes.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)),
		Request:       r,
	}, nil
}

// exchange applies the faults, answers the request and logs it.
func (s *Server) exchange(r *http.Request) Reply {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // a truncated body counts as a short one
	}
	effects := s.strike(r)
	for _, effect := range effects {
		if effect.Before != nil {
			effect.Before()
		}
	}
	arrived, answer := s.answer(r, body, effects)
	for _, effect := range effects {
		if effect.Change != nil {
			effect.Change(&answer)
		}
		if effect.After != nil {
			effect.After()
		}
	}
	logged := Request{
		Time: arrived, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Status: answer.Status, Body: string(body),
	}
	if answer.Drop {
		logged.Status = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, logged)
	return answer
}

// answer handles one request. If one of the effects is a refusal, the request has no effect.
func (s *Server) answer(r *http.Request, body []byte, effects []Effect) (time.Time, Reply) {
	defer s.lock()()
	s.countDown()
	c := newCall(r, body, effects)
	victims := s.victims(c)
	answer := s.refusal(effects)
	if late := lateness(effects); answer != nil && late > 0 {
		s.after(late, nil, func() { s.remember(c, s.victims(c), s.handle(c).Status) })
	}
	if answer == nil {
		handled := s.handle(c)
		answer = &handled
	}
	s.remember(c, victims, answer.Status)
	return s.now, *answer
}

// refusal returns the first refusal among the effects, nil if there is none.
func (s *Server) refusal(effects []Effect) *Reply {
	for _, effect := range effects {
		if effect.Refuse != nil {
			copied := effect.Refuse.clone()
			return &copied
		}
	}
	return nil
}

// lateness returns how much later a refused request takes effect; zero: never.
func lateness(effects []Effect) (late time.Duration) {
	for _, effect := range effects {
		late = max(late, effect.Late)
	}
	return late
}

func (r *Reply) clone() Reply {
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return Reply{Status: r.Status, Header: header, Body: bytes.Clone(r.Body), Drop: r.Drop}
}

// Requests returns the log of all requests since the start or the last ResetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count returns the number of logged requests with this method (empty: any) and a path that matches the regular expression
// path. It panics if the expression is not valid.
func (s *Server) Count(method, path string) int {
	pattern := regexp.MustCompile(path)
	n := 0
	for _, r := range s.Requests() {
		if (method == "" || method == r.Method) && pattern.MatchString(r.Path) {
			n++
		}
	}
	return n
}

// ResetRequests empties the log of requests.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// lock locks the mutex, runs all events that are due and returns the function that unlocks.
func (s *Server) lock() func() {
	s.mu.Lock()
	if s.sessions == nil {
		s.sessions = map[string]*session{}
	}
	s.catchUp(time.Now())
	return s.mu.Unlock
}
