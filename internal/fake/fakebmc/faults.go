package fakebmc

import (
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Always is a Fault.Count without limit.
const Always = -1

// Fault selects requests that the BMC does not answer as it should. Except with Delay, the request has no effect. Commands of IPMI
// are requests with the method IPMI: see package ipmi.
type Fault struct {
	Method string // empty means any
	Path   string // regular expression for the path; empty means any
	Every  int    // hits every nth of these requests; zero means each
	Count  int    // number of requests to hit; zero means 1, Always means no limit

	Status     int           // answers with this status, such as 503; zero breaks the connection
	RetryAfter time.Duration // of the answer; zero means none
	Hang       bool          // keeps the connection open without an answer until the client closes it
	Delay      time.Duration // answers rightly, this much later
	Accept     bool          // answers as if the BMC had done it
}

type injected struct {
	Fault
	path *regexp.Regexp
	seen int // requests that the fault selects
	hits int
}

// Inject adds a fault. hits returns the number of requests that it has hit; end removes it. Inject panics if Path is not a valid
// regular expression.
func (s *Server) Inject(f Fault) (hits func() int, end func()) {
	added := &injected{Fault: f, path: regexp.MustCompile(f.Path)}
	if f.Count == 0 {
		added.Count = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, added)
	hits = func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return added.hits
	}
	end = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		added.Count = added.hits
	}
	return hits, end
}

// Unplug makes the BMCs answer nothing, as if their network were gone, until the returned function is called.
func (s *Server) Unplug() (plug func()) {
	_, plug = s.Inject(Fault{Count: Always})
	return plug
}

func (s *Server) strike(r *http.Request) (reply, bool) {
	hit, struck := s.Strike(r.Method, r.URL.Path)
	switch {
	case !struck:
		return reply{}, false
	case hit.Delay > 0:
		select {
		case <-time.After(hit.Delay):
			return reply{}, false
		case <-r.Context().Done():
			return reply{}, true
		}
	case hit.Hang:
		<-r.Context().Done()
		return reply{}, true
	case hit.Accept:
		return reply{status: http.StatusNoContent}, true
	case hit.Status == 0:
		return reply{}, true
	}
	answer := problem(hit.Status, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable.").reply()
	if hit.RetryAfter > 0 {
		answer.header = map[string]string{"Retry-After": strconv.Itoa(int(hit.RetryAfter.Seconds()))}
	}
	return answer, true
}

// Strike returns the first fault that hits a request, and counts it. Faces of other protocols call it for each of their requests.
func (s *Server) Strike(method, path string) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Method != "" && f.Method != method || !f.path.MatchString(path) || f.Count != Always && f.hits >= f.Count {
			continue
		}
		if f.seen++; f.seen%max(f.Every, 1) == 0 {
			f.hits++
			return f.Fault, true
		}
	}
	return Fault{}, false
}
