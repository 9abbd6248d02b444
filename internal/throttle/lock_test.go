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

var groupLock = throttle.Lock{Name: "group", For: "reserve nodes"}

// Several runs, each with several callers, use a lock for longer than its lease.
func TestALockIsHeldByOneCallerAtATimeForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(0)
		var mu sync.Mutex
		var wg sync.WaitGroup
		inside, most := 0, 0
		for range 3 {
			run := throttle.NewLocks(y)
			for range 4 {
				wg.Go(func() {
					err := run.With(t.Context(), groupLock, func(ctx context.Context) error {
						mu.Lock()
						inside++
						most = max(most, inside)
						mu.Unlock()
						<-time.After(5 * time.Minute)
						mu.Lock()
						defer mu.Unlock()
						inside--
						return ctx.Err()
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if most != 1 || y.left() > 0 {
			t.Errorf("%d callers had the lock at once, and %d records are left", most, y.left())
		}
		if y.tried > 100 {
			t.Errorf("%d attempts to create the record of 12 callers, want about one each", y.tried)
		}
		if log := strings.Join(y.log, "\n"); !strings.Contains(log, "waits to reserve nodes: another resource of this run is doing that") {
			t.Errorf("the log says %q", log)
		}
		<-time.After(time.Hour)
	})
}

func TestAWaitForALockIsBounded(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"of another run": true, "of this run": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(0)
				locks := throttle.NewLocks(y)
				holder, run := locks, ""
				if other {
					holder, run = throttle.NewLocks(y), "r1"
				}
				ctx, stop := context.WithCancel(t.Context())
				go func() {
					_ = holder.With(ctx, groupLock, func(ctx context.Context) error { <-ctx.Done(); return nil })
				}()
				<-time.After(time.Second)
				y.setRun("group", run)
				began, bounded := time.Now(), groupLock
				bounded.Wait = 10 * time.Minute
				err := locks.With(t.Context(), bounded, func(context.Context) error { t.Error("it got the lock"); return nil })
				locked := fault.AboutOf[*throttle.Locked](err, throttle.KindLocked)
				if locked == nil || locked.Run != run || time.Since(began).Round(time.Minute) != 10*time.Minute {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				stop()
				<-time.After(time.Hour)
				if y.left() > 0 {
					t.Errorf("%d records are left", y.left())
				}
			})
		})
	}
}

// A holder that cannot renew its record stops before others may take the lock over.
func TestAHolderThatCannotRenewStopsBeforeOthersBegin(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(y *yard){
		"no answer":            func(y *yard) { y.silent = true },
		"the record is gone":   func(y *yard) { delete(y.records, "group") },
		"another run's record": func(y *yard) { y.records["group"] = throttle.Record{Name: "group", Holder: "another"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(0)
				var stopped time.Duration
				began := time.Now()
				err := throttle.NewLocks(y).With(t.Context(), groupLock, func(ctx context.Context) error {
					y.mu.Lock()
					lose(y)
					y.mu.Unlock()
					<-ctx.Done()
					stopped = time.Since(began)
					return ctx.Err()
				})
				if !fault.Is(err, throttle.KindLost) || stopped > time.Minute {
					t.Errorf("%v after %s", err, stopped)
				}
				if name == "another run's record" && y.left() != 1 {
					t.Error("it deleted the record of another run")
				}
				<-time.After(time.Hour)
			})
		})
	}
}

// dying is a site on which the requests of a run are not executed any more after one of them.
type dying struct {
	*yard
	requests, at int
	after        bool // the last request is executed
}

var errDead = errors.New("killed")

func (d *dying) dies() (executes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
	return d.requests < d.at || d.requests == d.at && d.after
}

func (d *dying) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests >= d.at
}

func (d *dying) Create(ctx context.Context, record throttle.Record) (done bool, err error) {
	if d.dies() {
		done, err = d.yard.Create(ctx, record)
	}
	if d.isDead() {
		return false, errDead
	}
	return done, err
}

func (d *dying) Read(ctx context.Context, name string) (record *throttle.Record, err error) {
	if d.dies() {
		record, err = d.yard.Read(ctx, name)
	}
	if d.isDead() {
		return nil, errDead
	}
	return record, err
}

func (d *dying) Replace(ctx context.Context, holder string, record throttle.Record) (done bool, err error) {
	if d.dies() {
		done, err = d.yard.Replace(ctx, holder, record)
	}
	if d.isDead() {
		return false, errDead
	}
	return done, err
}

func (d *dying) Delete(ctx context.Context, name string) error {
	if d.dies() {
		_ = d.yard.Delete(ctx, name)
	}
	if d.isDead() {
		return errDead
	}
	return nil
}

// A run takes the lock of a dead run over, or one that was left with words, and is killed at any request. The next run gets the lock, and
// leaves no record behind.
func TestAKillDuringATakeOverLeavesNoRecord(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := range 20 {
			at, released := 1+n/2, n%2 == 0
			synctest.Test(t, func(t *testing.T) {
				y := newYard(0)
				if created, err := y.Create(t.Context(), throttle.Record{
					Name: "group", Holder: "a dead run",
					Released: released,
				}); !created || err != nil {
					t.Fatal(err)
				}
				<-time.After(2 * time.Minute)
				killed := &dying{yard: y, at: at, after: after}
				_ = throttle.NewLocks(killed).With(t.Context(), groupLock, func(context.Context) error { return nil })
				<-time.After(2 * time.Minute)
				began, entered := time.Now(), false
				err := throttle.NewLocks(y).With(t.Context(), groupLock, func(context.Context) error { entered = true; return nil })
				if err != nil || !entered || time.Since(began) > 150*time.Second {
					t.Errorf("killed at request %d, after %t, released %t: %v after %s", at, after, released, err, time.Since(began))
				}
				if y.left() > 0 {
					t.Errorf("killed at request %d, after %t: %v are left", at, after, y.records)
				}
				<-time.After(time.Hour)
			})
		}
	}
}

// Another client has changed the record, so that it names no holder.
func TestARecordWithoutAHolderExpiresToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(0)
		if created, err := y.Create(t.Context(), throttle.Record{Name: "group"}); !created || err != nil {
			t.Fatal(err)
		}
		began, got := time.Now(), time.Duration(0)
		err := throttle.NewLocks(y).With(t.Context(), groupLock, func(context.Context) error { got = time.Since(began); return nil })
		if err != nil || got < time.Minute || got > 2*time.Minute {
			t.Errorf("%v after %s", err, got)
		}
		<-time.After(time.Hour)
	})
}

func (y *yard) setRun(name, run string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	record := y.records[name]
	record.Run = run
	y.records[name] = record
}

// A holder that renews its record for ever, by mistake or not, does not keep others for ever: they end and say who it is.
func TestLock_heldForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			_ = throttle.NewLocks(y).With(ctx, throttle.Lock{Name: "admission", For: "hold it"}, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
		}()
		<-time.After(time.Second)
		y.setRun("admission", "r1")
		began := time.Now()
		err := y.limiter(throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic}).Admit(t.Context(), y.machine("m00"), 0,
			y.clean("m00", time.Minute))
		locked := fault.AboutOf[*throttle.Locked](err, throttle.KindLocked)
		if !fault.Is(err, throttle.KindQueue) || locked == nil || locked.Run != "r1" || locked.Where != "record admission" ||
			time.Since(began).Round(time.Minute) != 10*time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if y.machine("m00").Busy {
			t.Error("the machine was started")
		}
		if log := strings.Join(y.log, "\n"); strings.Count(log, "run r1 is doing that") < 15 {
			t.Errorf("the log says %q", log)
		}
		stop()
		<-time.After(time.Hour)
	})
}

// Many runs that take turns may together have a lock for long. Each caller gets it in the end.
func TestLock_turnsOfManyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y, lock := newYard(0), throttle.Lock{Name: "admission", For: "take turns", Hold: time.Minute}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := throttle.NewLocks(y).With(t.Context(), lock, func(context.Context) error {
					<-time.After(30 * time.Second)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// Another project has a record of the name of the lock, which this user cannot read: the run goes on without the lock, soon.
func TestLock_recordThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1)
		y.create = func(int) (bool, error) { return false, nil }
		began, l := time.Now(), y.limiter(throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic})
		if err := l.Admit(t.Context(), y.machine("m00"), 0, y.clean("m00", time.Minute)); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if notices := l.Notices(); len(notices) != 1 || !strings.Contains(notices[0].Detail, "cannot see it") {
			t.Errorf("the notices are %v", notices)
		}
		<-time.After(time.Hour)
	})
}
