package throttle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// crowd counts the callers that have a lock at once.
type crowd struct {
	mu           sync.Mutex
	inside, most int
}

// enter counts a caller until its lock is lost, or for a while.
func (c *crowd) enter(ctx context.Context, stays time.Duration) error {
	c.mu.Lock()
	c.inside++
	c.most = max(c.most, c.inside)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inside--
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(stays):
		return nil
	}
}

// The clock of a site jumps, or the site does not answer for a while, while several runs use a lock: one caller at a time has it.
func TestLock_oneHolderWhateverTheClocksAndAnswersDo(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(y *yard){
		"the clock jumps ahead": func(y *yard) { y.set(func() { y.ahead = time.Hour }) },
		"the clock jumps back":  func(y *yard) { y.set(func() { y.ahead = -time.Hour }) },
		"silent for a minute": func(y *yard) {
			y.set(func() { y.away = true })
			<-time.After(65 * time.Second)
			y.set(func() { y.away = false })
		},
		"silent for 20 minutes, and the clock jumps": func(y *yard) {
			y.set(func() { y.away = true })
			<-time.After(20 * time.Minute)
			y.set(func() { y.away, y.ahead = false, time.Hour })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y, c := newYard(0), crowd{}
				var wg sync.WaitGroup
				for range 3 {
					run := throttle.NewLocks(y)
					wg.Go(func() {
						for done := 0; done < 3; {
							err := run.With(t.Context(), groupLock, func(ctx context.Context) error { return c.enter(ctx, time.Minute) })
							switch {
							case err == nil:
								done++
							case !fault.Is(err, throttle.KindLost) && !errors.Is(err, errPassing):
								t.Error(err)
								return
							}
							<-time.After(time.Second)
						}
					})
				}
				<-time.After(90 * time.Second)
				began := time.Now()
				disturb(y)
				wg.Wait()
				if c.most != 1 || time.Since(began) > time.Hour {
					t.Errorf("%d callers had the lock at once; all were done after %s", c.most, time.Since(began))
				}
			})
		})
	}
}

// A run was killed while it had the lock, and the clock of the site was set back: the others go on after the lease.
func TestLock_ofADeadRunLapsesWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-24 * time.Hour, -time.Hour, 0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(0)
			if created, err := y.Create(t.Context(), throttle.Record{Name: "group", Holder: "a dead run"}); !created || err != nil {
				t.Fatal(err)
			}
			y.ahead = ahead
			began := time.Now()
			err := throttle.NewLocks(y).With(t.Context(), groupLock, func(context.Context) error { return nil })
			if took := time.Since(began); err != nil || took < time.Minute || took > 62*time.Second {
				t.Errorf("the clock is ahead by %s: %v after %s", ahead, err, took)
			}
			<-time.After(time.Hour)
		})
	}
}

// What a record says of its own lease is believed within bounds.
func TestLock_forgedLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(0)
		forged := throttle.Record{Name: "group", Holder: "somebody", Lease: 1000 * time.Hour}
		if created, err := y.Create(t.Context(), forged); !created || err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := throttle.NewLocks(y).With(t.Context(), groupLock, func(context.Context) error { return nil })
		if took := time.Since(began); err != nil || took > 16*time.Minute {
			t.Errorf("%v after %s", err, took)
		}
		<-time.After(time.Hour)
	})
}

// A site whose answers take long is slow, and not stuck: two runs start all their machines, at most one at a time.
func TestAdmit_onASlowSite(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{8 * time.Second, 25 * time.Second, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(6)
			y.slow = slow
			began := time.Now()
			var wg sync.WaitGroup
			for _, ids := range [][]string{{"m00", "m01", "m02"}, {"m03", "m04", "m05"}} {
				l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
				wg.Go(func() { y.admitAll(t, l, time.Minute, ids...) })
			}
			most := 0
			for range 4000 {
				<-time.After(2 * time.Second)
				busy := 0
				for _, id := range y.ids() {
					if y.machine(id).Busy {
						busy++
					}
				}
				if most = max(most, busy); busy > 1 {
					break
				}
			}
			wg.Wait()
			if most != 1 {
				t.Errorf("answers of %s: %d machines were busy at once, with a limit of 1", slow, most)
			}
			if log := strings.Join(y.log, "\n"); strings.Contains(log, "did not answer for so long") {
				t.Errorf("answers of %s: a lock was lost:\n%s", slow, log)
			}
			t.Logf("answers of %s: all was started within %s", slow, time.Since(began))
		})
	}
}

// A panic in any request of the limit ends neither the process nor the wait of the machines.
func TestAdmit_goesOnAfterAPanic(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"list", "create", "read", "replace", "delete"} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(4)
				l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
				other := y.limiter(slotsOf(1, throttle.CoordinationIronic))
				var wg sync.WaitGroup
				wg.Go(func() { y.admitAll(t, other, 3*time.Minute, "m00", "m01") })
				<-time.After(time.Second)
				y.set(func() { y.panics = request })
				wg.Go(func() { y.admitAll(t, l, time.Minute, "m02", "m03") })
				wg.Wait()
				<-time.After(time.Hour)
				if y.panics != "" {
					t.Errorf("no request to %s was made", request)
				}
			})
		})
	}
}

// The clock that writes when machines entered their states is behind that of the site's answers: busy machines are not stuck for that. A
// machine that is stuck frees its slot all the same.
func TestAdmit_theClocksOfASiteDiffer(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-3 * time.Hour, 0, time.Hour, 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(6)
			for _, id := range []string{"m00", "m01"} {
				y.change(id, func(m *throttle.Machine) { m.Busy, m.State = true, "deploying" })
			}
			y.change("m05", func(m *throttle.Machine) { m.Busy, m.State, m.Since = true, "clean wait", m.Since.Add(-4*time.Hour) })
			y.ahead = ahead
			l := y.limiter(slotsOf(3, throttle.CoordinationIronic))
			time.AfterFunc(20*time.Minute, func() {
				for _, id := range []string{"m00", "m01"} {
					y.change(id, func(m *throttle.Machine) { m.Busy, m.State = false, "active" })
				}
			})
			most := 0
			go func() {
				for range 60 {
					<-time.After(time.Minute)
					busy := 0
					for _, id := range y.ids() {
						if m := y.machine(id); m.Busy && id != "m05" {
							busy++
						}
					}
					most = max(most, busy)
				}
			}()
			at := y.admitAll(t, l, 10*time.Minute, "m02", "m03")
			<-time.After(2 * time.Hour)
			if most > 3 {
				t.Errorf("the clock of the answers is ahead by %s: %d machines were busy, with a limit of 3", ahead, most)
			}
			if ahead >= 0 && at["m02"] > time.Minute && at["m03"] > time.Minute {
				t.Errorf("the clock of the answers is ahead by %s: the stuck machine kept its slot: %v", ahead, at)
			}
		})
	}
}
