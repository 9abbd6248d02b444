package fakeoneview

import (
	"net/http"
	"regexp"
	"time"
)

// Always is a Fault.Count without limit.
const Always = -1

// Fault selects the requests that an Effect hits. Each fault counts its requests on its own. If several faults hit a request,
// all effects apply in the order of injection, but only the first refusal.
type Fault struct {
	Method string // empty means any
	Path   string // regular expression for the path; empty means any
	Nth    int    // number of the first matching request to hit, from 1; zero means 1
	Count  int    // number of requests to hit; zero means 1, Always means no limit
	Effect Effect
}

// Effect changes a request that a fault hits, or the task that the request starts. The functions run without the Server's lock
// and may call it. Common effects have constructors: Refuse, LoseAnswer, FailValidation, ...
type Effect struct {
	Before func()       // runs before the appliance handles the request
	Refuse *Reply       // replaces the answer; the request has no effect, or has it only later: see Late
	Change func(*Reply) // changes the answer after the request took effect
	After  func()       // runs after the request took effect and before the answer

	// Late, with Refuse, lets the request take effect that much later, as behind a proxy that has answered 504 meanwhile.
	Late time.Duration

	BeforeRunning  func()   // runs between the answer and the first check of the task
	BeforeEnd      func()   // runs right before the task ends
	FailValidation *Problem // fails the task without any effect
	FailApply      *Problem // fails the task with the work half done: the profile exists on its hardware
	Warn           *Problem // ends the task in state Warning with the work done
	HideResource   bool     // never shows resourceUri in the task
	HoldRequests   int      // keeps the task in Running until the appliance has received this number of further requests
	StuckTask      bool     // keeps the task in Running forever
	ForgetTask     bool     // answers 404 to requests for the task
}

// injected is a fault with its counters.
type injected struct {
	Fault
	path *regexp.Regexp
	seen int
	hits int
}

// Inject adds a fault. The returned function returns the number of requests that the fault has hit. Inject panics if Path is
// not a valid regular expression.
func (s *Server) Inject(f Fault) (hits func() int) {
	added := &injected{Fault: f, path: regexp.MustCompile(f.Path)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, added)
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return added.hits
	}
}

// ClearFaults removes all faults. Their effects on tasks in progress stay.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// strike returns the effects on a request.
func (s *Server) strike(r *http.Request) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var effects []Effect
	for _, f := range s.faults {
		if (f.Method != "" && f.Method != r.Method) || !f.path.MatchString(r.URL.Path) {
			continue
		}
		f.seen++
		first, count := max(f.Nth, 1), f.Count
		if count == 0 {
			count = 1
		}
		if f.seen >= first && (count == Always || f.seen < first+count) {
			f.hits++
			effects = append(effects, f.Effect)
		}
	}
	return effects
}
