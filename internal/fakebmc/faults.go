package fakebmc

import (
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Always is a Fault.Count without limit.
const Always = -1

// Fault selects requests that the BMC does not answer as it should. The request has no effect.
type Fault struct {
	Method string // empty means any
	Path   string // regular expression for the path; empty means any
	Count  int    // number of requests to hit; zero means 1, Always means no limit

	Status     int           // answers with this status, such as 503; zero breaks the connection
	RetryAfter time.Duration // of the answer; zero means none
	Hang       bool          // keeps the connection open without an answer until the client closes it
}

// injected is a fault with its counter.
type injected struct {
	Fault
	path *regexp.Regexp
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

// strike answers a request that a fault hits.
func (s *Server) strike(r *http.Request) (reply, bool) {
	hit := s.hit(r)
	if hit == nil {
		return reply{}, false
	}
	if hit.Hang {
		<-r.Context().Done()
		return reply{}, true
	}
	if hit.Status == 0 {
		return reply{}, true
	}
	answer := problem(hit.Status, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable.").reply()
	if hit.RetryAfter > 0 {
		answer.header = map[string]string{"Retry-After": strconv.Itoa(int(hit.RetryAfter.Seconds()))}
	}
	return answer, true
}

// hit returns the first fault that hits a request, and counts it; nil if there is none.
func (s *Server) hit(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if (f.Method == "" || f.Method == r.Method) && f.path.MatchString(r.URL.Path) && (f.Count == Always || f.hits < f.Count) {
			f.hits++
			return &f.Fault
		}
	}
	return nil
}
