package fakeoneview

import (
	"net/http"
	"regexp"
)

// Always is a Fault.Count without end.
const Always = -1

// Fault says which requests an Effect hits. Every fault counts for itself; several may hit the same request, and then all of
// their effects apply, in the order of injection, except that the first refusal wins.
type Fault struct {
	Method string // any when empty
	Path   string // regular expression for the path, any when empty
	Nth    int    // the first of the matching requests that is hit, counted from 1; zero is 1
	Count  int    // how many are hit from there on; zero is 1, Always is without end
	Effect Effect
}

// Effect is what happens to a request that a fault hits, and to the task that it starts. The functions run without the
// Server's lock and may call it. The effects that are often wanted have constructors: Refuse, LoseAnswer, FailValidation, ...
type Effect struct {
	Before func()       // runs before the request is looked at
	Refuse *Reply       // is the answer; the request has no effect
	Change func(*Reply) // changes the answer after the request took effect
	After  func()       // runs after the request took effect, before its answer leaves

	BeforeRunning  func()   // runs between the answer and the check of the task that the request starts
	BeforeEnd      func()   // runs when the task is about to end
	FailValidation *Problem // ends the task with this error and nothing done
	FailApply      *Problem // ends the task with this error and the work half done: a profile exists and holds its hardware
	Warn           *Problem // ends the task in state Warning; the work is done
	HideResource   bool     // never shows resourceUri in the task
	HoldRequests   int      // keeps the task in Running while so many more requests of any kind come by
	StuckTask      bool     // keeps the task in Running for ever
	ForgetTask     bool     // answers 404 to whoever asks for the task
}

// injected is a fault at work.
type injected struct {
	Fault
	path *regexp.Regexp
	seen int
	hits int
}

// Inject adds a fault. The function it returns tells how many requests the fault has hit. Inject panics when Path is no
// regular expression.
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

// ClearFaults removes all faults. Tasks that were hit stay so.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// strike finds the effects on a request.
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
