// Package fakeoneview is an HPE OneView appliance that lives in memory: sessions, server hardware, server profile templates,
// server profiles and tasks, driven by the clock and strict where the real one is. Tests and the fakeoneview program share it.
//
// Beside the REST API it has a hand for the other user of the appliance (TakeHardware, EditProfile, ...), faults that can be
// injected, and a memory for harm: whatever a client does to a profile, or to the power of a server, that is somebody else's.
//
// It is written from HPE's documentation, from captured answers and from what the SDKs accept, and knows nothing of its clients.
// Where nobody could tell how an appliance behaves, the comment says so: clients must not depend on it.
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

// Server is one appliance. Its zero value has no hardware and lets everybody log in. The fields must not be changed while
// requests are served. A Server is safe for concurrent use and starts no goroutine: whatever was due since the last request
// happens at the start of the next one, with the time at which it was due.
type Server struct {
	// CurrentVersion and MinimumVersion are the ends of the range of X-API-Version, 8600 and 300 when zero. The range must
	// not begin below 200, the version that brought templates.
	CurrentVersion, MinimumVersion int

	// Username, Password and Domain are the one account. With an empty Username everybody may log in; an empty Domain is LOCAL.
	Username, Password, Domain string

	// LoginMessage makes a login without loginMsgAck fail.
	LoginMessage bool

	// SessionLimit is how many sessions may be open at once, 960 when zero.
	SessionLimit int

	// IdleTimeout ends a session that was not used for so long, 24 hours when zero.
	IdleTimeout time.Duration

	// StepTime is how long each state of a task lasts: New, Starting, Running. With zero a task is over by the next request,
	// unless a hook runs meanwhile.
	StepTime time.Duration

	// PageLimit caps the members of one page further than the appliance does, which gives at most 64 profiles or templates
	// and 256 of everything else. Zero leaves it at that.
	PageLimit int

	// EmptyProfileURI shows a missing serverProfileUri as "" instead of null.
	EmptyProfileURI bool

	// LateProfileURI shows serverProfileUri on the hardware only when the profile is applied, not as soon as it exists. It is
	// not known which of both appliances do.
	LateProfileURI bool

	// SpellURI, when set, spells the URIs in resources: their ID in other case, with a slash at the end. In requests the
	// appliance takes all such spellings.
	SpellURI func(uri string) string

	// PlainConflicts answers 409 at once where otherwise the task fails, because the server is on or has a profile.
	PlainConflicts bool

	// MissingIfMatch is the status for a DELETE or PUT without If-Match from API version 500 on, 403 when zero. Documentation
	// has 403, and 412 was seen elsewhere.
	MissingIfMatch int

	mu       sync.Mutex
	now      time.Time // the moment that is being worked on
	downTill time.Time // an appliance that restarts answers 503 until then
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
	operations []*operation // also those that are over
	held       []*operation // that wait for requests to come by
}

// Request is one logged request.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Query  string // raw
	Status int    // 0 when the answer was dropped
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
	_, _ = w.Write(answer.Body) // the client may be gone; nobody is left to tell
}

// RoundTrip answers one request in the process, without a socket. It makes the Server an http.RoundTripper.
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

// exchange lets the faults and the appliance make the answer, and logs the request.
func (s *Server) exchange(r *http.Request) Reply {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // a body that breaks off is treated as one that ends there
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

// answer works on one request. A refusal among the effects keeps it from having any.
func (s *Server) answer(r *http.Request, body []byte, effects []Effect) (time.Time, Reply) {
	defer s.lock()()
	s.countDown()
	c := newCall(r, body, effects)
	victims := s.victims(c)
	answer := s.refusal(effects)
	if answer == nil {
		handled := s.handle(c)
		answer = &handled
	}
	s.remember(c, victims, answer.Status)
	return s.now, *answer
}

// refusal is the first one among the effects, nil when there is none.
func (s *Server) refusal(effects []Effect) *Reply {
	for _, effect := range effects {
		if effect.Refuse != nil {
			copied := effect.Refuse.clone()
			return &copied
		}
	}
	return nil
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

// Count is how many of the logged requests had this method, any when empty, and a path that the regular expression matches.
// It panics when the expression is not one.
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

// ResetRequests forgets the logged requests.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// lock takes the mutex, lets everything happen that is due by now, and returns the unlock.
func (s *Server) lock() func() {
	s.mu.Lock()
	if s.sessions == nil {
		s.sessions = map[string]*session{}
	}
	s.catchUp(time.Now())
	return s.mu.Unlock
}
