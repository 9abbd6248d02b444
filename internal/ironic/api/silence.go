package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// silentFor is how long a server may be silent before the log says so, and again after the same time.
	silentFor = 30 * time.Second

	// hangsAfter is how long a server must have been silent, besides, before it counts as one that hangs.
	hangsAfter = time.Minute

	// askAgain is how long nothing is sent to a server that hangs, after a request that has timed out.
	askAgain = 10 * time.Second
)

// SilentError says that a request was not sent, because the server hangs: it lets requests time out, and has answered none since.
type SilentError struct {
	Server string // Ironic or Keystone
	Lasts  time.Duration
}

// Error says how long there has been no answer.
func (e *SilentError) Error() string {
	return fmt.Sprintf("%s has answered no request for %s, so this one was not sent", e.Server, e.Lasts.Round(time.Second))
}

// Timeout makes it a time-out, which may pass.
func (e *SilentError) Timeout() bool { return true }

// Temporary is what net.Error demands.
func (e *SilentError) Temporary() bool { return true }

// silence is how long a server has not answered. A request that times out is repeated once; if the repetition times out, too, the server
// hangs. Then one request at a time asks whether it answers again, and the others fail at once: otherwise each of hundreds of resources
// would wait for its own time-outs, one after the other. It is safe for concurrent use.
type silence struct {
	mu       sync.Mutex
	since    time.Time // when the first request was sent that got no answer; zero: the last one got one
	told     time.Time
	timedOut time.Time // when the first request has timed out since then; zero: none has
	hangs    bool
	dropped  time.Time // when the log has told of a request that gets no answer, while the silence was young
	asking   bool      // a request asks a server that hangs
	asked    time.Time // when the last such request has failed
}

func (c *Conn) silenceOf(key string) *silence {
	found, _ := c.silences.LoadOrStore(key, &silence{})
	return found.(*silence) //nolint:forcetypeassert // it has only these
}

// silenceAt is silenceOf the server of a URL.
func (c *Conn) silenceAt(address string) *silence {
	u, _ := url.Parse(address)
	return c.silenceOf((&observed{conn: c}).key(&http.Request{URL: cmp.Or(u, &url.URL{})}))
}

// isYoung reports whether the server has answered something not long ago, so that nothing else tells of a request that it does not answer.
// It reports that once in silentFor.
func (s *silence) isYoung() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.since) >= silentFor || time.Since(s.dropped) < silentFor {
		return false
	}
	s.dropped = time.Now()
	return true
}

// asks returns a SilentError if a request is not to be sent. Call heard after a request that is sent.
func (s *silence) asks(server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs && (s.asking || time.Since(s.asked) < askAgain) {
		return &SilentError{Server: server, Lasts: time.Since(s.since)}
	}
	s.asking = s.hangs
	return nil
}

func (s *silence) tells() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = time.Now()
}

// heard records whether a request got an answer of the server itself. It returns how long there has been none, and false unless that is to
// be told now.
func (s *silence) heard(sent time.Time, answered, timedOut bool) (lasts time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.asking = false
	switch {
	case answered:
		s.since, s.timedOut, s.hangs = time.Time{}, time.Time{}, false
		return 0, false
	case s.since.IsZero():
		s.since = sent
		if s.told.Before(sent) {
			s.told = sent
		}
	}
	switch {
	case timedOut && s.timedOut.IsZero():
		s.timedOut = now
	case timedOut && sent.After(s.timedOut) && now.Sub(s.since) >= hangsAfter:
		s.hangs, s.asked = true, now
	}
	if due = now.Sub(s.told) >= silentFor; due {
		s.told = now
	}
	return now.Sub(s.since), due
}
