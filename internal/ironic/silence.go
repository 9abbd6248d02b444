package ironic

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// silentFor is how long a server may be silent before the log says so, and again after the same time.
const silentFor = 30 * time.Second

// silence is how long a server has not answered. It is safe for concurrent use.
type silence struct {
	mu    sync.Mutex
	since time.Time // when the first request was sent that got no answer; zero: the last one got one
	told  time.Time
}

// heard records whether a request got an answer of the server itself. It returns how long there has been none, and false unless that is to
// be told now.
func (s *silence) heard(sent time.Time, answered bool) (lasts time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case answered:
		s.since = time.Time{}
		return 0, false
	case s.since.IsZero():
		s.since, s.told = sent, sent
	}
	if due = now.Sub(s.told) >= silentFor; due {
		s.told = now
	}
	return now.Sub(s.since), due
}

// awaited writes a log line every silentFor until stop is called, because a request still has no answer.
func (o *observed) awaited(r *http.Request) (stop func()) {
	start := time.Now()
	var stopped atomic.Bool
	var tell func()
	tell = func() {
		if stopped.Load() {
			return
		}
		o.warn(r, fmt.Sprintf("no answer for %s", time.Since(start).Round(time.Second)), "waits for it")
		time.AfterFunc(silentFor, tell)
	}
	timer := time.AfterFunc(silentFor, tell)
	return func() {
		stopped.Store(true)
		timer.Stop()
	}
}

// note records whether a request was answered, and tells how long the server has been silent. A proxy's answer is none.
func (o *observed) note(r *http.Request, sent time.Time, status int) {
	answered := status != 0 && status != http.StatusBadGateway && status != http.StatusServiceUnavailable && status != http.StatusGatewayTimeout
	if lasts, due := o.client.silence.heard(sent, answered); due {
		o.warn(r, fmt.Sprintf("no answer of %s for %s", o.server(r), lasts.Round(time.Second)), "goes on asking where something waits for it")
	}
}

// warn writes a log line about a request. It has all facts in its text, because Terraform writes attributes in no order.
func (o *observed) warn(r *http.Request, fact, does string) {
	text := fmt.Sprintf("%s %s://%s%s: %s; the provider %s", r.Method, r.URL.Scheme, r.URL.Host, r.URL.Path, fact, does)
	o.client.cfg.Logger.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelWarn, text)
}
