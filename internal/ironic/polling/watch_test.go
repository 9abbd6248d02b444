package polling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// site is what a watch polls: objects that are there unless gone, and all polls of them with their times.
type site struct {
	interval time.Duration
	listTime time.Duration                          // how long a list takes
	answer   func(since time.Duration, n int) error // of the nth poll; nil: all succeed
	gone     map[string]bool
	shared   bool                     // other runs are at work
	ends     time.Duration            // until all objects are active, and deploying before; zero: their state is their name
	changes  map[string]time.Duration // when the state of an object changes

	mu      sync.Mutex
	start   time.Time
	singles map[string][]time.Duration
	lists   []time.Duration
}

func (s *site) watch() *Watch[string] {
	if s.interval == 0 {
		s.interval = time.Minute
	}
	s.start, s.singles = time.Now(), map[string][]time.Duration{}
	w := NewWatch(s.interval, s.one, s.all)
	w.Others = func(map[string]*string) bool { return s.shared }
	w.State = func(value *string) string {
		if at := s.changes[*value]; at > 0 && time.Since(s.start) >= at {
			return *value + " changed"
		}
		return *value
	}
	return w
}

func (s *site) polled(note func(since time.Duration)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Since(s.start)
	note(since)
	n := len(s.lists)
	for _, polls := range s.singles {
		n += len(polls)
	}
	if s.answer == nil {
		return nil
	}
	return s.answer(since, n)
}

func (s *site) one(_ context.Context, id string) (*string, error) {
	if err := s.polled(func(since time.Duration) { s.singles[id] = append(s.singles[id], since) }); err != nil {
		return nil, err
	}
	if s.gone[id] {
		return nil, &api.StatusError{Status: http.StatusNotFound, Message: "gone"}
	}
	return s.value(id), nil
}

func (s *site) value(id string) *string {
	switch {
	case s.ends == 0:
	case time.Since(s.start) < s.ends:
		id = "deploying"
	default:
		id = "active"
	}
	return &id
}

func (s *site) all(context.Context) (map[string]*string, error) {
	err := s.polled(func(since time.Duration) { s.lists = append(s.lists, since) })
	<-time.After(s.listTime)
	if err != nil {
		return nil, err
	}
	all := map[string]*string{}
	for _, id := range names(600) {
		if !s.gone[id] {
			all[id] = s.value(id)
		}
	}
	return all, nil
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("node-%03d", i)
	}
	return all
}

// keepWaiting waits for poll after poll of some objects, as for machines that take their time.
func keepWaiting(t *testing.T, w *Watch[string], until time.Duration, ids ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until)
	defer cancel()
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			for ctx.Err() == nil {
				if value, err := w.Next(ctx, id, time.Hour); ctx.Err() == nil && (err != nil || *value != id) {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
}

func seconds(s ...float64) []time.Duration {
	all := make([]time.Duration, len(s))
	for i := range s {
		all[i] = time.Duration(s[i] * float64(time.Second))
	}
	return all
}

func wantPolls(t *testing.T, what string, got, want []time.Duration) {
	t.Helper()
	near := func(a, b time.Duration) bool { return (a - b).Abs() < 50*time.Millisecond }
	if !slices.EqualFunc(got, want, near) {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

func TestWatch_pollsLessAndLessOften(t *testing.T) {
	t.Parallel()
	for interval, want := range map[time.Duration][]time.Duration{
		10 * time.Second:       seconds(0.5, 1.25, 2.375, 4.06, 6.59, 10.39, 11.39, 12.39, 13.39),
		2 * time.Second:        seconds(0.5, 1.25, 2.375, 4.06, 6.06, 8.06, 10.06, 11.06, 12.06),
		200 * time.Millisecond: seconds(0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{interval: interval}
			keepWaiting(t, s.watch(), want[len(want)-1]+min(interval, time.Second)/2, "node-000")
			wantPolls(t, "polls", s.singles["node-000"], want)
			if len(s.lists) > 0 {
				t.Errorf("%d lists for one waiter", len(s.lists))
			}
		})
	}
}

func TestWatch_youngWaitersShareLists(t *testing.T) {
	t.Parallel()
	young := seconds(0.5, 1.25, 2.375, 4.06, 6.59)
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		keepWaiting(t, s.watch(), 9*time.Second, names(9)...)
		wantPolls(t, "lists", s.lists, young)
		if len(s.singles) > 0 {
			t.Errorf("single polls of nine: %v", s.singles)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		keepWaiting(t, s.watch(), 9*time.Second, names(8)...)
		for _, id := range names(8) {
			wantPolls(t, "polls", s.singles[id], young)
		}
		if len(s.lists) > 0 {
			t.Errorf("lists for eight: %v", s.lists)
		}
	})
}

func TestWatch_successiveYoungWaitersShareLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		w := s.watch()
		var wg sync.WaitGroup
		for i, id := range names(60) {
			wg.Go(func() {
				<-time.After(time.Duration(i) * 50 * time.Millisecond)
				keepWaiting(t, w, 5*time.Second, id)
			})
		}
		wg.Wait()
		for i := 1; i < len(s.lists); i++ {
			if pause := s.lists[i] - s.lists[i-1]; pause < firstPoll {
				t.Errorf("a list %s after the one before", pause)
			}
		}
		if n := len(s.lists); n < 5 || n > 16 {
			t.Errorf("%d lists in 8 seconds", n)
		}
	})
}

// Whatever an operation takes, polling adds at most a twentieth of it, and at most the interval.
func TestWatch_addsATwentieth(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 3, 4, 60} {
		for _, lasts := range []time.Duration{11 * time.Second, 25 * time.Second, 95 * time.Second, 333 * time.Second, 2000 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				s := &site{interval: 10 * time.Second, ends: lasts}
				w := s.watch()
				var wg sync.WaitGroup
				for _, id := range names(waiters) {
					wg.Go(func() {
						for state := "deploying"; state != "active"; {
							value, err := w.Next(t.Context(), id, time.Hour)
							if err != nil {
								t.Error(err)
								return
							}
							state = *value
						}
						if late, most := time.Since(s.start)-lasts, min(max(lasts/20, time.Second), s.interval); late > most {
							t.Errorf("%d waiters learn after %s that the operation has ended after %s, want %s at most", waiters,
								late, lasts, most)
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// The machine that changed last decides when the next list is requested: it may be the next that ends.
func TestWatch_newStateShortensInterval(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{interval: 10 * time.Second, changes: map[string]time.Duration{"node-000": 10 * time.Minute}}
			keepWaiting(t, s.watch(), 12*time.Minute, names(waiters)...)
			polls := s.lists
			if waiters == 1 {
				polls = s.singles["node-000"]
			}
			for i := 1; i < len(polls); i++ {
				gap := polls[i] - polls[i-1]
				switch seen := polls[i-1] - 10*time.Minute; {
				case seen >= 0 && seen < 20*time.Second && gap > 1100*time.Millisecond:
					t.Errorf("%d waiters: a pause of %s, %s after the change", waiters, gap, seen)
				case seen < 0 && polls[i-1] > 5*time.Minute && gap < 9*time.Second:
					t.Errorf("%d waiters: a pause of %s, %s before the change", waiters, gap, -seen)
				}
			}
		})
	}
}

// 20 machines that deploy for half an hour need 222 requests, 11 for each.
func TestWatch_boundsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{interval: 10 * time.Second}
		keepWaiting(t, s.watch(), 30*time.Minute, names(20)...)
		if n := len(s.lists); n < 150 || n > 225 {
			t.Errorf("%d lists in half an hour", n)
		}
		if len(s.singles) > 0 {
			t.Errorf("single polls of %d nodes", len(s.singles))
		}
	})
}

func TestWatch_fewOldWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		keepWaiting(t, s.watch(), 10*time.Minute, names(3)...)
		if len(s.lists) > 0 {
			t.Errorf("%d lists for three waiters", len(s.lists))
		}
	})
}

func TestWatch_slowLists(t *testing.T) {
	t.Parallel()
	for shared, pause := range map[bool]time.Duration{false: 40 * time.Second, true: 80 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{interval: 10 * time.Second, listTime: 2 * time.Second, shared: shared}
			keepWaiting(t, s.watch(), 20*time.Minute, names(20)...)
			for i := 1; i < len(s.lists); i++ {
				if got := s.lists[i] - s.lists[i-1] - s.listTime; got < pause || got > pause+time.Second {
					t.Errorf("shared %v: a pause of %s after a list of 2 s, want %s", shared, got, pause)
				}
			}
			if len(s.lists) < 10 {
				t.Errorf("shared %v: %d lists in 20 minutes", shared, len(s.lists))
			}
		})
	}
}

func TestWatch_missingMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{gone: map[string]bool{"node-004": true}}
		w := s.watch()
		var wg sync.WaitGroup
		for _, id := range names(20) {
			wg.Go(func() {
				_, err := w.Next(t.Context(), id, time.Hour)
				if api.IsNotFound(err) != s.gone[id] {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		wg.Wait()
		if len(s.lists) != 1 || len(s.singles) != 1 {
			t.Errorf("lists at %v, single polls %v", s.lists, s.singles)
		}
	})
}

func TestWatch_verbRestartsPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		w := s.watch()
		keepWaiting(t, w, 12*time.Second, "node-000")
		w.Restart("node-000")
		keepWaiting(t, w, 2*time.Second, "node-000")
		wantPolls(t, "polls", s.singles["node-000"], seconds(0.5, 1.25, 2.375, 4.06, 6.59, 10.39, 11.39, 12.5, 13.25))
	})
}

func TestWatch_passingFailures(t *testing.T) {
	t.Parallel()
	for _, passing := range []error{
		&api.StatusError{Status: http.StatusBadGateway}, &api.StatusError{Status: http.StatusServiceUnavailable}, syscall.ECONNRESET,
		syscall.ECONNREFUSED,
		fmt.Errorf("list nodes: %w", api.ErrShifted),
	} {
		for _, waiters := range []int{1, 4, 20} {
			synctest.Test(t, func(t *testing.T) {
				s := &site{answer: func(since time.Duration, _ int) error {
					if since < 5*time.Minute {
						return passing
					}
					return nil
				}}
				w := s.watch()
				var wg sync.WaitGroup
				for _, id := range names(waiters) {
					wg.Go(func() {
						if value, err := w.Next(t.Context(), id, time.Hour); err != nil || *value != id {
							t.Errorf("after %v: %v", passing, err)
						}
					})
				}
				wg.Wait()
				if took := time.Since(s.start); took > 7*time.Minute {
					t.Errorf("%d waiters were told after %s", waiters, took)
				}
			})
		}
	}
}

func TestWatch_otherFailures(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(time.Duration, int) error { return &api.StatusError{Status: http.StatusForbidden} }}
			w := s.watch()
			var wg sync.WaitGroup
			for _, id := range names(waiters) {
				wg.Go(func() {
					if _, err := w.Next(t.Context(), id, time.Hour); !api.IsStatus(err, http.StatusForbidden, "") {
						t.Errorf("next = %v, want the 403", err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestWatch_panic(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(_ time.Duration, n int) error {
				if n == 1 {
					panic("broken answer")
				}
				return nil
			}}
			w := s.watch()
			var wg sync.WaitGroup
			for _, id := range names(waiters) {
				wg.Go(func() {
					if _, err := w.Next(t.Context(), id, time.Hour); !routine.Is(err) {
						t.Errorf("next = %v, want the panic", err)
					}
				})
			}
			wg.Wait()
			if _, err := w.Next(t.Context(), "node-000", time.Hour); err != nil {
				t.Errorf("the watch does not work after a panic: %v", err)
			}
		})
	}
}

func TestWatch_listServesEarlierWaitersOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{listTime: 10 * time.Second}
		w := s.watch()
		var wg sync.WaitGroup
		for i, after := range []time.Duration{0, 5 * time.Second} { // the second wave comes while the first list is made
			for _, id := range names(18)[9*i : 9*i+9] {
				wg.Go(func() {
					<-time.After(after)
					if _, err := w.Next(t.Context(), id, time.Hour); err != nil {
						t.Error(err)
					}
					if s.mu.Lock(); len(s.lists) != i+1 {
						t.Errorf("%s is told by list %d", id, len(s.lists))
					}
					s.mu.Unlock()
				})
			}
		}
		wg.Wait()
	})
}

func TestWatch_waiterTimesOut(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(time.Duration, int) error { return syscall.ECONNRESET }}
			w := s.watch()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Second, cancel)
			var wg sync.WaitGroup
			for _, id := range names(waiters) {
				wg.Go(func() {
					start := time.Now()
					if _, err := w.Next(ctx, id, 90*time.Second); !errors.Is(err, api.ErrNoPoll) || time.Since(start) != 90*time.Second {
						t.Errorf("next = %v after %s", err, time.Since(start))
					}
					if _, err := w.Next(ctx, id, time.Hour); !errors.Is(err, context.Canceled) || time.Since(start) != 100*time.Second {
						t.Errorf("next = %v, want the interruption", err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestWatch_listForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		w := s.watch()
		for range 3 {
			all, err := w.NextAll(t.Context())
			if err != nil || len(slices.Collect(maps.Keys(all))) != 600 {
				t.Errorf("nextAll = %d, %v", len(all), err)
			}
		}
		wantPolls(t, "lists", s.lists, seconds(10, 20, 30))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.NextAll(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nextAll = %v, want the interruption", err)
		}
	})
}

// Who waits for all objects waits for a sixth of the interval at most, and for less while objects change.
func TestWatch_listForAllFollowsChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		w := s.watch()
		go keepWaiting(t, w, 10*time.Minute, "node-000")
		<-time.After(30 * time.Second)
		for at := 30 * time.Second; at < 10*time.Minute; {
			if _, err := w.NextAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := time.Since(s.start)
			if pause, want := now-at, min(max(at/20, time.Second), 10*time.Second); pause > want*11/10 {
				t.Errorf("a pause of %s after %s", pause, at)
			}
			at = now
		}
		if n := len(s.lists); n > 100 {
			t.Errorf("%d lists in ten minutes", n)
		}
		<-time.After(time.Minute)
	})
}
