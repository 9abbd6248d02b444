package throttle_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const pollEvery = 10 * time.Second

var (
	errRefused = errors.New("the concurrent action limit has been reached")
	errPassing = errors.New("try again")
	errLasting = errors.New("access was denied")
)

// yard is a site in memory. Its machines are in the states that the tests put them into.
type yard struct {
	looked     int   // how often the record of a freeze was read
	unreadable error // of that
	mu         sync.Mutex
	machines   map[string]throttle.Machine
	records    map[string]throttle.Record
	made       map[string]time.Time // records
	lists      int
	created    int // records, since the beginning
	listErr    error
	answers    time.Duration                          // how long the answer to a list takes
	create     func(tried int) (done bool, err error) // what happens to a Create; nil: it succeeds
	tried      int
	distance   time.Duration // that a Delete travels
	replaced   int
	read       int
	deleted    int
	silent     bool          // no Replace is answered
	away       bool          // nothing is answered
	slow       time.Duration // how long each other answer takes
	ahead      time.Duration // how far the clock of the site has jumped
	panics     string        // the request that panics, once
	log        []string
}

func newYard(n int) *yard {
	y := &yard{machines: map[string]throttle.Machine{}, records: map[string]throttle.Record{}, made: map[string]time.Time{}}
	for i := range n {
		id := fmt.Sprintf("m%02d", i)
		y.machines[id] = throttle.Machine{ID: id, Label: id, State: "manageable", Since: time.Now()}
	}
	return y
}

func (y *yard) machine(id string) throttle.Machine {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.machines[id]
}

func (y *yard) change(id string, change func(m *throttle.Machine)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	m := y.machines[id]
	m.Since = time.Now()
	change(&m)
	y.machines[id] = m
}

// answer takes the time of an answer. It returns an error if there is none.
func (y *yard) answer(request string) error {
	y.mu.Lock()
	slow, away, panics := y.slow, y.away, y.panics == request
	if panics {
		y.panics = ""
	}
	y.mu.Unlock()
	if panics {
		panic("a defect in " + request)
	}
	time.Sleep(slow)
	if away {
		return errPassing
	}
	return nil
}

// set changes the site.
func (y *yard) set(change func()) {
	y.mu.Lock()
	defer y.mu.Unlock()
	change()
}

func (y *yard) Machines(context.Context) ([]throttle.Machine, error) {
	if err := y.answer("list"); err != nil {
		return nil, err
	}
	defer time.Sleep(y.answers)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.lists++
	var all []throttle.Machine
	for _, m := range y.machines {
		m.Source = m.ID
		all = append(all, m)
	}
	return all, y.listErr
}

func (y *yard) NextMachines(ctx context.Context) ([]throttle.Machine, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(pollEvery):
		return y.Machines(ctx)
	}
}

func (y *yard) Create(_ context.Context, record throttle.Record) (bool, error) {
	if err := y.answer("create"); err != nil {
		return false, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.tried++
	done, err := true, error(nil)
	if y.create != nil {
		done, err = y.create(y.tried)
	}
	if _, exists := y.records[record.Name]; !done || exists {
		return false, err
	}
	y.records[record.Name], y.made[record.Name] = record, time.Now()
	y.created++
	return err == nil, err
}

func (y *yard) Read(_ context.Context, name string) (*throttle.Record, error) {
	if err := y.answer("read"); err != nil {
		return nil, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if name != throttle.FreezeName {
		y.read++
	} else if y.looked++; y.unreadable != nil {
		return nil, y.unreadable
	}
	record, exists := y.records[name]
	if !exists {
		return nil, nil
	}
	record.Age = time.Since(y.made[name]) + y.ahead
	return &record, nil
}

func (y *yard) Replace(_ context.Context, holder string, record throttle.Record) (bool, error) {
	if err := y.answer("replace"); err != nil {
		return false, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.silent {
		return false, errPassing
	}
	y.replaced++
	held, exists := y.records[record.Name]
	if !exists || held.Holder != holder {
		return false, nil
	}
	record.Run = held.Run // it is the site that sets it
	y.records[record.Name], y.made[record.Name] = record, time.Now()
	return true, nil
}

func (y *yard) Delete(_ context.Context, name string) error {
	if err := y.answer("delete"); err != nil {
		return err
	}
	<-time.After(y.distance)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.deleted++
	delete(y.records, name)
	return nil
}

// left is how many lock records are there.
func (y *yard) left() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.records)
}

// taken is how many lock records were made since the beginning, and listed how often the machines were listed.
func (y *yard) taken() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.created
}

func (y *yard) listed() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.lists
}

func (y *yard) Now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return time.Now().Add(y.ahead)
}

func (y *yard) Refused(err error) bool { return errors.Is(err, errRefused) }

func (y *yard) AnswersTake() time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	return max(y.answers, y.slow)
}

func (y *yard) Partial() bool { return false }

func (y *yard) Where(name string) string { return "record " + name }

func (y *yard) MayPass(err error) bool { return errors.Is(err, errPassing) }

func (y *yard) Log(_ context.Context, _ slog.Level, text string, _ ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.log = append(y.log, text)
}

func (y *yard) limiter(limit throttle.Limit) *throttle.Limiter {
	return throttle.New(rand.Text(), limit, y, pollEvery)
}

func slotsOf(n int, coord throttle.Coordination) throttle.Limit {
	return throttle.Limit{Max: n, StuckAfter: 45 * time.Minute, Coordination: coord}
}

// clean is a verb after which its machine is busy for a while.
func (y *yard) clean(id string, lasts time.Duration) throttle.Send {
	return func(context.Context, *throttle.Machine) error {
		y.change(id, func(m *throttle.Machine) { m.Busy, m.State = true, "cleaning" })
		time.AfterFunc(lasts, func() { y.change(id, func(m *throttle.Machine) { m.Busy, m.State = false, "available" }) })
		return nil
	}
}

// admitAll admits machines at the same time and returns when each was admitted.
func (y *yard) admitAll(t *testing.T, l *throttle.Limiter, lasts time.Duration, ids ...string) map[string]time.Duration {
	t.Helper()
	start, at := time.Now(), map[string]time.Duration{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			if err := l.Admit(t.Context(), y.machine(id), 0, y.clean(id, lasts)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			mu.Lock()
			defer mu.Unlock()
			at[id] = time.Since(start)
		})
	}
	wg.Wait()
	return at
}

func (y *yard) ids() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var all []string
	for id := range y.machines {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

func TestMachinesThatComeTogetherShareOneLockAndOneList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(10)
		l := y.limiter(slotsOf(20, throttle.CoordinationIronic))
		var wg sync.WaitGroup
		for i, id := range y.ids() {
			wg.Go(func() {
				<-time.After(time.Duration(i) * 10 * time.Millisecond)
				y.admitAll(t, l, time.Hour, id)
			})
		}
		wg.Wait()
		synctest.Wait()
		if y.taken() != 1 || y.listed() != 1 || y.left() != 0 {
			t.Errorf("%d locks taken, %d lists, %d records are left; want 1, 1, 0", y.taken(), y.listed(), y.left())
		}
		<-time.After(time.Hour)
	})
}

func TestAVerbSeesItsMachineAsTheListUnderTheLockShowsIt(t *testing.T) {
	t.Parallel()
	exempt := slotsOf(1, throttle.CoordinationIronic)
	exempt.Exempt = []string{"*-media"}
	for name, tc := range map[string]struct {
		limit  throttle.Limit
		change func(y *yard, m *throttle.Machine)
		seen   bool
	}{
		"under the lock":  {slotsOf(1, throttle.CoordinationIronic), nil, true},
		"in this process": {slotsOf(1, throttle.CoordinationProcess), nil, false},
		"no limit":        {throttle.Limit{}, nil, false},
		"exempt":          {exempt, func(_ *yard, m *throttle.Machine) { m.BootInterface = "virtual-media" }, false},
		"busy already":    {slotsOf(1, throttle.CoordinationIronic), func(_ *yard, m *throttle.Machine) { m.Busy = true }, false},
		"no right to lock": {slotsOf(1, throttle.CoordinationIronic), func(y *yard, _ *throttle.Machine) {
			y.create = func(int) (bool, error) { return false, throttle.NotAllowed(errLasting) }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(1)
				m := y.machine("m00")
				if tc.change != nil {
					tc.change(y, &m)
				}
				var seen *throttle.Machine
				err := y.limiter(tc.limit).Admit(t.Context(), m, 0, func(_ context.Context, s *throttle.Machine) error {
					seen = s
					return nil
				})
				if err != nil || (seen != nil) != tc.seen {
					t.Errorf("saw %+v, %v; want a machine: %v", seen, err, tc.seen)
				}
				if seen != nil && seen.Source != "m00" {
					t.Errorf("saw the record of %v", seen.Source)
				}
			})
		})
	}
}

// A machine may have changed since a list that began before it came: its reservation may be newer than that list.
func TestAVerbSeesNoListThatBeganBeforeItsMachineCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		y.answers = 5 * time.Second
		l := y.limiter(slotsOf(2, throttle.CoordinationIronic))
		var seen [2]*throttle.Machine
		var waits sync.WaitGroup
		for i := range seen {
			waits.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				err := l.Admit(t.Context(), y.machine(fmt.Sprintf("m%02d", i)), 0, func(_ context.Context, s *throttle.Machine) error {
					seen[i] = s
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		waits.Wait()
		if seen[0] == nil || seen[1] != nil {
			t.Errorf("the machines saw %v; want only the first one to see the list", seen)
		}
		if y.lists != 1 {
			t.Errorf("%d lists, want one", y.lists)
		}
	})
}

func TestAMachineThatStartsTakesASlotUntilItHasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
		err := l.AdmitStart(t.Context(), y.machine("m00"), 0, func(context.Context, *throttle.Machine) error {
			y.change("m00", func(m *throttle.Machine) { m.Starting = true })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Minute, func() {
			y.change("m00", func(m *throttle.Machine) { m.Starting = false })
			l.Started("m00")
		})
		at := y.admitAll(t, l, time.Second, "m01")["m01"]
		if at < 150*time.Second || at > 165*time.Second {
			t.Errorf("the next machine was admitted after %s, want 30 s after 2 minutes", at)
		}
		<-time.After(time.Minute)
	})
}

func TestAMachineThatIsKeptTakesASlotFromItsOperationToItsRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		limit := slotsOf(1, throttle.CoordinationIronic)
		limit.StuckAfter = time.Minute
		l := y.limiter(limit)
		y.change("m00", func(m *throttle.Machine) { m.Since = time.Now().Add(-time.Hour) })
		release := l.Keep("m00")
		y.admitAll(t, l, time.Minute, "m01") // m00 takes no slot as long as nothing is done with it
		y.admitAll(t, l, time.Minute, "m00")
		time.AfterFunc(5*time.Minute, func() {
			if at := y.admitAll(t, l, time.Minute, "m00")["m00"]; at > 11*time.Second {
				t.Errorf("the machine that is kept waited %s for another slot", at)
			}
		})
		time.AfterFunc(20*time.Minute, release)
		at := y.admitAll(t, l, time.Minute, "m01")["m01"]
		if at < 20*time.Minute || at > 20*time.Minute+11*time.Second {
			t.Errorf("the next machine was admitted after %s, want 20 minutes", at)
		}
		<-time.After(time.Minute)
	})
}

func TestAMachineThatAnEarlierRunHasStartedIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
		y.change("m00", func(m *throttle.Machine) { m.Busy = true })
		release := l.Keep("m00")
		time.AfterFunc(2*time.Minute, func() { y.change("m00", func(m *throttle.Machine) { m.Busy = false }) })
		time.AfterFunc(5*time.Minute, release)
		if at := y.admitAll(t, l, time.Second, "m01")["m01"]; at < 5*time.Minute {
			t.Errorf("the next machine was admitted after %s, want 5 minutes", at)
		}
		<-time.After(time.Minute)
	})
}

// A machine that is switched off, to be started again, holds its slot meanwhile: it never waits while it is off.
func TestAMachineThatRestartsHoldsItsSlotWhileItIsOff(t *testing.T) {
	t.Parallel()
	for released, want := range map[bool][2]time.Duration{
		false: {5*time.Minute + 25*time.Second, 6 * time.Minute},
		true:  {3 * time.Minute, 3*time.Minute + 15*time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(2)
			l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
			sent := func(context.Context, *throttle.Machine) error { return nil }
			release := l.Keep("m00")
			if err := l.Admit(t.Context(), y.machine("m00"), 0, sent); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(3*time.Minute, func() {
				if released {
					release()
					return
				}
				began := time.Now()
				if err := l.AdmitStart(t.Context(), y.machine("m00"), 5, func(context.Context, *throttle.Machine) error {
					y.change("m00", func(m *throttle.Machine) { m.Starting = true })
					return nil
				}); err != nil || time.Since(began) > 15*time.Second {
					t.Errorf("the machine was started again after %s: %v", time.Since(began), err)
				}
				<-time.After(2 * time.Minute)
				y.change("m00", func(m *throttle.Machine) { m.Starting = false })
				l.Started("m00")
				release()
			})
			if at := y.admitAll(t, l, time.Second, "m01")["m01"]; at < want[0] || at > want[1] {
				t.Errorf("released %t: the next machine was admitted after %s, want %s to %s", released, at, want[0], want[1])
			}
			<-time.After(time.Minute)
		})
	}
}

func TestAMachineThatOthersStartTakesASlotWhileItStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		y.change("m00", func(m *throttle.Machine) { m.Starting, m.Since = true, time.Now().Add(-100*time.Hour) }) // active since then
		time.AfterFunc(2*time.Minute, func() { y.change("m00", func(m *throttle.Machine) { m.Starting = false }) })
		at := y.admitAll(t, y.limiter(slotsOf(1, throttle.CoordinationIronic)), time.Second, "m01")["m01"]
		if at < 2*time.Minute || at > 2*time.Minute+11*time.Second {
			t.Errorf("the next machine was admitted after %s, want 2 minutes", at)
		}
		<-time.After(time.Minute)
	})
}

func TestAStartThatNeverEndsAgesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		y.change("m00", func(m *throttle.Machine) { m.Starting, m.Since = true, time.Now().Add(-100*time.Hour) })
		at := y.admitAll(t, y.limiter(slotsOf(1, throttle.CoordinationIronic)), time.Second, "m01")["m01"]
		if at < 45*time.Minute || at > 46*time.Minute {
			t.Errorf("the next machine was admitted after %s, want 45 minutes", at)
		}
		<-time.After(time.Minute)
	})
}

func TestAVerbThatTheSiteRefusesKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
		var order []string
		var wg sync.WaitGroup
		for i, id := range y.ids() {
			refusals := 3 - 3*i // of the first one
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Second)
				err := l.Admit(t.Context(), y.machine(id), 0, func(ctx context.Context, seen *throttle.Machine) error {
					if refusals--; refusals >= 0 {
						return errRefused
					}
					order = append(order, id)
					return y.clean(id, time.Minute)(ctx, seen)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if want := y.ids(); !slices.Equal(order, want) {
			t.Errorf("admitted %v, want %v", order, want)
		}
		<-time.After(time.Minute)
	})
}

func TestAPanicOfAVerbIsItsCallersOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if r := recover(); r != "broken verb" {
					t.Errorf("the caller's panic is %v", r)
				}
			}()
			_ = l.Admit(t.Context(), y.machine("m00"), 0, func(context.Context, *throttle.Machine) error { panic("broken verb") })
		})
		wg.Go(func() { y.admitAll(t, l, time.Minute, "m01", "m02") })
		wg.Wait()
		<-time.After(time.Minute)
		if y.left() > 0 {
			t.Errorf("%d records are left", y.left())
		}
	})
}

func TestAnInterruptedWaiterLeavesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		y.change("m00", func(m *throttle.Machine) { m.Busy = true })
		l := y.limiter(throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic})
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, interrupt)
		start := time.Now()
		var wg sync.WaitGroup
		for _, id := range []string{"m01", "m02"} {
			wg.Go(func() {
				err := l.Admit(ctx, y.machine(id), 0, func(context.Context, *throttle.Machine) error {
					t.Error("a verb was sent")
					return nil
				})
				if !errors.Is(err, context.Canceled) || time.Since(start) != time.Hour {
					t.Errorf("Admit = %v after %s", err, time.Since(start))
				}
			})
		}
		wg.Wait()
		y.change("m00", func(m *throttle.Machine) { m.Busy = false })
		y.admitAll(t, l, time.Second, "m01") // the queue moves on for those who come later
		<-time.After(time.Minute)
	})
}

func TestAnInterruptedVerbLeavesNoLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1)
		ctx, interrupt := context.WithCancel(t.Context())
		err := y.limiter(slotsOf(1, throttle.CoordinationIronic)).Admit(ctx, y.machine("m00"), 0,
			func(ctx context.Context, _ *throttle.Machine) error {
				interrupt()
				<-ctx.Done()
				return ctx.Err()
			})
		if !errors.Is(err, context.Canceled) || y.left() > 0 { // the process ends here
			t.Errorf("Admit = %v, and %d records are left", err, y.left())
		}
	})
}

func TestAVerbThatFailsLeavesNoLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1)
		y.distance = time.Second
		err := y.limiter(slotsOf(1, throttle.CoordinationIronic)).Admit(t.Context(), y.machine("m00"), 0,
			func(context.Context, *throttle.Machine) error { return errLasting })
		if !errors.Is(err, errLasting) || y.left() > 0 { // the process ends here
			t.Errorf("Admit = %v, and %d records are left", err, y.left())
		}
	})
}

func TestWhatKeepsMachinesFromBeingCountedEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(2)
		y.listErr = errLasting
		l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
		var wg sync.WaitGroup
		for _, id := range y.ids() {
			wg.Go(func() {
				err := l.Admit(t.Context(), y.machine(id), 0, y.clean(id, time.Second))
				if !fault.Is(err, throttle.KindQueue) || !errors.Is(err, errLasting) {
					t.Errorf("Admit = %v", err)
				}
			})
		}
		wg.Wait()
		y.listErr = nil
		y.admitAll(t, l, time.Second, "m00")
		<-time.After(time.Minute)
	})
}

func TestTheLockIsTakenThoughAnswersAreLost(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(tried int) (bool, error){
		"it was created":     func(tried int) (bool, error) { return true, map[bool]error{true: errPassing}[tried == 1] },
		"it was not created": func(tried int) (bool, error) { return tried > 3, map[bool]error{true: errPassing}[tried <= 3] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(1)
				y.create = create
				if at := y.admitAll(t, y.limiter(slotsOf(1, throttle.CoordinationIronic)), time.Second, "m00")["m00"]; at > 3*time.Second {
					t.Errorf("admitted after %s", at)
				}
				<-time.After(time.Minute)
				if y.taken() != 1 || y.left() > 0 {
					t.Errorf("%d locks were taken, and %d are left", y.taken(), y.left())
				}
			})
		})
	}
}

func TestTheLockOfADeadRunIsTakenOverAfterTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		if created, err := y.Create(t.Context(), throttle.Record{Name: "admission", Holder: "a dead run"}); !created || err != nil {
			t.Fatal(err)
		}
		first, second := y.limiter(slotsOf(3, throttle.CoordinationIronic)), y.limiter(slotsOf(3, throttle.CoordinationIronic))
		var wg sync.WaitGroup
		for l, id := range map[*throttle.Limiter]string{first: "m00", second: "m01"} {
			wg.Go(func() {
				if at := y.admitAll(t, l, time.Hour, id)[id]; at < time.Minute || at > 62*time.Second {
					t.Errorf("admitted after %s, want the lease of a minute", at)
				}
			})
		}
		wg.Wait()
		<-time.After(time.Hour)
		if y.left() > 0 {
			t.Errorf("%d records are left", y.left())
		}
	})
}

func TestUsageTellsOwnMachinesFromThoseOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(6)
		y.change("m01", func(m *throttle.Machine) { m.Busy = true })
		y.change("m02", func(m *throttle.Machine) { m.Starting = true })
		y.change("m03", func(m *throttle.Machine) { m.Busy, m.Since = true, time.Now().Add(-time.Hour) })
		y.change("m04", func(m *throttle.Machine) { m.Busy, m.BootInterface = true, "virtual-media" })
		limit := slotsOf(9, throttle.CoordinationProcess)
		limit.Exempt = []string{"*-media"}
		l := y.limiter(limit)
		y.admitAll(t, l, time.Minute, "m00")
		all, err := y.Machines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := throttle.Usage{Max: 9, Busy: 3, Own: 1, Others: 2, Stuck: 1, Exempt: 1}
		if got := l.UsageOf(all); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		if got := l.Notices(); len(got) > 0 && strings.Contains(got[0].Summary, "waited") {
			t.Errorf("said %v, though nothing waited for an interval", got)
		}
		<-time.After(time.Minute)
	})
}
