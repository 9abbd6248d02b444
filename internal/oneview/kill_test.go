package oneview_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// killer ends a process at its nth request, whoever that goes to: before it is sent, or after it took effect. Nothing that the
// process does afterwards reaches anybody.
type killer struct {
	n    int
	sent bool
	kill context.CancelFunc

	mu   sync.Mutex
	seen int
}

func (k *killer) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		k.mu.Lock()
		k.seen++
		seen := k.seen
		k.mu.Unlock()
		if seen < k.n {
			return next.RoundTrip(r)
		}
		if seen == k.n && k.sent {
			if resp, err := next.RoundTrip(r); err == nil {
				_ = resp.Body.Close()
			}
		}
		k.kill()
		return nil, context.Canceled
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// killed runs work in a process that is killed at its nth request, and reports whether it came to that.
func (s *site) killed(t *testing.T, n int, sent bool, work func(context.Context, *oneview.Pool)) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &killer{n: n, sent: sent, kill: cancel}
	work(ctx, s.pool(t, k.through))
	return k.seen >= n
}

// everyKill tells a story in which a process is killed at each of its requests in turn, before and after it is sent, and in
// which the next one comes at once, or later.
func everyKill(t *testing.T, work func(context.Context, *testing.T, *site, *oneview.Pool), story func(t *testing.T, s *site)) {
	t.Helper()
	for n := 1; ; n++ {
		reached := true
		for _, sent := range []bool{false, true} {
			for _, later := range []time.Duration{0, 7 * time.Second, time.Hour} {
				t.Run(fmt.Sprintf("request %d, sent %t, next after %s", n, sent, later), func(t *testing.T) {
					inVirtualTime(t, func(t *testing.T) {
						s := newSite(t, 1)
						s.appliance.PowerOn(s.blades.Hardware[0])
						reached = s.killed(t, n, sent, func(ctx context.Context, pool *oneview.Pool) { work(ctx, t, s, pool) })
						<-time.After(later)
						story(t, s)
					})
				})
			}
		}
		if !reached {
			if n < 10 {
				t.Errorf("the work was done after %d requests; it must be more", n)
			}
			return
		}
		if n > 200 {
			t.Fatal("the work never ends")
		}
	}
}

func prepareFirst(ctx context.Context, _ *testing.T, s *site, pool *oneview.Pool) {
	_, _ = pool.Prepare(ctx, oneview.PrepareOptions{NodeID: s.nodes[0]})
}

func TestPrepareThatWasKilledIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	everyKill(t, prepareFirst, func(t *testing.T, s *site) {
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestPrepareThatWasKilledLeavesNothingAfterTheNextRelease(t *testing.T) {
	t.Parallel()
	everyKill(t, prepareFirst, func(t *testing.T, s *site) {
		<-time.After(time.Minute) // what the appliance has accepted and not begun, nobody can see
		if err := s.pool(t).Release(t.Context(), oneview.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestReleaseThatWasKilledIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	uri := ""
	everyKill(t, func(ctx context.Context, t *testing.T, s *site, pool *oneview.Pool) {
		uri = s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.PowerOn(s.blades.Hardware[0])
		_ = pool.Release(ctx, oneview.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri})
	}, func(t *testing.T, s *site) {
		if err := s.pool(t).Release(t.Context(), oneview.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestReleaseThatWasKilledAndThenPreparedIsConsistent(t *testing.T) {
	t.Parallel()
	everyKill(t, func(ctx context.Context, t *testing.T, s *site, pool *oneview.Pool) {
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.PowerOn(s.blades.Hardware[0])
		_ = pool.Release(ctx, oneview.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri})
	}, func(t *testing.T, s *site) {
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestARollbackThatWasKilledIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	everyKill(t, func(ctx context.Context, t *testing.T, s *site, pool *oneview.Pool) {
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(broken, false)})
		prepareFirst(ctx, t, s, pool)
	}, func(t *testing.T, s *site) {
		s.appliance.ClearFaults()
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestUpdateThatWasKilledIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	update := func(ctx context.Context, s *site, pool *oneview.Pool) error {
		_, err := pool.Update(ctx, oneview.UpdateOptions{NodeID: s.nodes[0], ProfileURI: s.profiles()[0].URI, Name: "web", Reapply: true})
		return err
	}
	everyKill(t, func(ctx context.Context, t *testing.T, s *site, pool *oneview.Pool) {
		s.mustPrepare(t, s.nodes[0])
		s.newBIOS()
		s.appliance.PowerOn(s.blades.Hardware[0])
		_ = update(ctx, s, pool)
	}, func(t *testing.T, s *site) {
		if err := update(t.Context(), s, s.pool(t)); err != nil {
			t.Fatal(err)
		}
		holding, err := s.pool(t).Inspect(t.Context(), s.node(t, s.nodes[0]))
		if err != nil || holding.Compliance != oneview.Compliant || holding.Profile.Name != "web" {
			t.Errorf("Inspect = %+v, %v", holding, err)
		}
		s.wantHeld(t)
	})
}

func TestARunThatIsInterruptedStillLearnsWhatItHasMade(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		ctx, interrupt := context.WithCancel(t.Context())
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.RightAfter(func() {
			time.AfterFunc(time.Second, interrupt)
		})})
		recorded := ""
		_, err := s.pool(t).Prepare(ctx, oneview.PrepareOptions{NodeID: s.nodes[0], Record: func(uri string) { recorded = uri }})
		wantWords(t, err, "context canceled")
		if found := s.profiles(); len(found) != 1 || recorded != found[0].URI || s.applied(t, s.nodes[0]) != recorded {
			t.Errorf("recorded %q, Ironic has %q, want both to be that of %+v", recorded, s.applied(t, s.nodes[0]), found)
		}
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}
