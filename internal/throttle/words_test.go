package throttle_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// office is what one run has of a yard: its clock may differ from that of the run, and no request of a killed run arrives.
type office struct {
	*yard
	ahead time.Duration // the clock of the site
	every time.Duration // between two lists

	mu   sync.Mutex
	dead bool
}

func (o *office) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
}

func (o *office) isDead() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dead
}

func (o *office) Now() time.Time { return time.Now().Add(o.ahead) }

func (o *office) MayPass(err error) bool { return !errors.Is(err, errDead) && o.yard.MayPass(err) }

func (o *office) Log(ctx context.Context, level slog.Level, text string, args ...any) {
	o.yard.Log(ctx, level, text, args...)
}

func (o *office) Machines(ctx context.Context) ([]throttle.Machine, error) {
	if o.isDead() {
		return nil, errDead
	}
	return o.yard.Machines(ctx)
}

func (o *office) NextMachines(ctx context.Context) ([]throttle.Machine, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(o.every):
		return o.Machines(ctx)
	}
}

func (o *office) Create(ctx context.Context, record throttle.Record) (bool, error) {
	if o.isDead() {
		return false, errDead
	}
	return o.yard.Create(ctx, record)
}

func (o *office) Read(ctx context.Context, name string) (*throttle.Record, error) {
	if o.isDead() {
		return nil, errDead
	}
	return o.yard.Read(ctx, name)
}

func (o *office) Replace(ctx context.Context, holder string, record throttle.Record) (bool, error) {
	if o.isDead() {
		return false, errDead
	}
	return o.yard.Replace(ctx, holder, record)
}

func (o *office) Delete(ctx context.Context, name string) error {
	if o.isDead() {
		return errDead
	}
	return o.yard.Delete(ctx, name)
}

// run returns a run on a yard with a limit, and what it has of the yard.
func (y *yard) run(limit int) (*throttle.Limiter, *office) {
	o := &office{yard: y, every: time.Second}
	return throttle.New(rand.Text(), slotsOf(limit, throttle.CoordinationIronic), o, pollEvery), o
}

// turn is when a machine began to wait and got a slot.
type turn struct {
	id             string
	queued, getsIt time.Duration
}

// queue is the turns of the machines of all runs.
type queue struct {
	y     *yard
	began time.Time
	mu    sync.Mutex
	turns []turn
	wg    sync.WaitGroup
}

// add lets a machine of a run wait from some time on, and work.
func (q *queue) add(t *testing.T, l *throttle.Limiter, id string, at, lasts time.Duration) {
	t.Helper()
	q.wg.Go(func() {
		<-time.After(at)
		queued := time.Since(q.began)
		if err := l.Admit(t.Context(), q.y.machine(id), 0, q.y.clean(id, lasts)); err != nil {
			if !errors.Is(err, errDead) {
				t.Errorf("%s: %v", id, err)
			}
			return
		}
		time.AfterFunc(lasts, l.Freed) // as the poll of the machine does
		q.mu.Lock()
		defer q.mu.Unlock()
		q.turns = append(q.turns, turn{id, queued, time.Since(q.began)})
	})
}

// wantFair checks that no machine got a slot before one that began to wait over 10 s earlier, unless there were slots for both.
func (q *queue) wantFair(t *testing.T) {
	t.Helper()
	for _, first := range q.turns {
		for _, then := range q.turns {
			if first.getsIt+2*time.Second < then.getsIt && then.queued+10*time.Second < first.queued {
				t.Errorf("%s, which waited from %s on, got a slot after %s; %s, which waited from %s on, after %s", first.id, first.queued,
					first.getsIt, then.id, then.queued, then.getsIt)
			}
		}
	}
}

// One run adds machines again and again. Another one has six machines that began to wait 11 s before the newer ones of the first.
func TestOlderMachinesOfAnotherRunGoFirst(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"right clock": 0, "slow clock": 3 * time.Hour, "fast clock": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(40)
				q, ids := &queue{y: y, began: time.Now()}, y.ids()
				a, first := y.run(3)
				b, second := y.run(3)
				first.ahead, second.ahead = ahead, ahead
				for _, id := range ids[:3] {
					q.add(t, a, id, 0, 20*time.Second)
				}
				for _, id := range ids[3:9] {
					q.add(t, b, id, time.Second, 20*time.Second)
				}
				for i, id := range ids[9:] {
					q.add(t, a, id, 12*time.Second+time.Duration(i)*time.Second, 20*time.Second)
				}
				<-time.After(10 * time.Second)
				record, err := y.Read(t.Context(), "admission")
				if err != nil || record == nil || len(record.Words) != 1 ||
					record.Words[0].Since.Sub(second.Now()).Round(time.Second) != -9*time.Second {
					t.Errorf("the record is %+v, %v: want the machines of the second run, by the clock of the site", record, err)
				}
				q.wg.Wait()
				q.wantFair(t)
				for _, turn := range q.turns {
					if turn.id >= ids[3] && turn.id <= ids[8] && turn.getsIt > 45*time.Second {
						t.Errorf("%s waited until %s", turn.id, turn.getsIt)
					}
				}
				<-time.After(time.Hour)
				if left := y.left(); left != 0 {
					t.Errorf("%d records are left", left)
				}
			})
		})
	}
}

// A machine that waits for long is not forgotten, although its run starts nothing meanwhile. The other run looks for a slot more often.
func TestAWordLivesAsLongAsItsRunWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		y.change("m00", func(m *throttle.Machine) { m.Busy = true })
		time.AfterFunc(30*time.Minute+2*time.Second, func() { y.change("m00", func(m *throttle.Machine) { m.Busy = false }) })
		q := &queue{y: y, began: time.Now()}
		first, slow := y.run(1)
		slow.every = 10 * time.Second
		second, _ := y.run(1)
		q.add(t, first, "m01", 0, time.Minute)
		q.add(t, second, "m02", time.Minute, time.Minute)
		q.wg.Wait()
		q.wantFair(t)
		<-time.After(time.Hour)
	})
}

// A run that is killed while it waits keeps the others waiting for its lease at most.
func TestAKilledRunThatWaitsIsForgotten(t *testing.T) {
	t.Parallel()
	// the slot, the other run
	for freed, want := range map[time.Duration]time.Duration{25 * time.Second: 80 * time.Second, 5 * time.Minute: 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(4)
			y.change("m00", func(m *throttle.Machine) { m.Busy = true })
			time.AfterFunc(freed, func() { y.change("m00", func(m *throttle.Machine) { m.Busy = false }) })
			q := &queue{y: y, began: time.Now()}
			killed, theirs := y.run(1)
			other, _ := y.run(1)
			q.add(t, killed, "m01", 0, time.Minute)
			q.add(t, killed, "m02", 0, time.Minute)
			q.add(t, other, "m03", 15*time.Second, time.Minute)
			time.AfterFunc(20*time.Second, theirs.kill)
			q.wg.Wait()
			if len(q.turns) != 1 || q.turns[0].getsIt > want+2*time.Second {
				t.Errorf("the turns are %v, want m03 after %s", q.turns, want)
			}
			<-time.After(time.Hour)
			if left := y.left(); left != 0 {
				t.Errorf("%d records are left", left)
			}
		})
	}
}

// A run that the user stops while it waits does not keep the others waiting.
func TestAStoppedRunWithdrawsItsWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		y.change("m00", func(m *throttle.Machine) { m.Busy = true })
		time.AfterFunc(25*time.Second, func() { y.change("m00", func(m *throttle.Machine) { m.Busy = false }) })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Second, stop)
		stopped, _ := y.run(1)
		go func() {
			err := stopped.Admit(ctx, y.machine("m01"), 0, y.clean("m01", time.Minute))
			if !errors.Is(err, context.Canceled) || y.left() != 1 { // that of the other run: the process ends here
				t.Errorf("Admit = %v, and %d records are left", err, y.left())
			}
		}()
		q := &queue{y: y, began: time.Now()}
		other, _ := y.run(1)
		q.add(t, other, "m02", 15*time.Second, time.Minute)
		q.wg.Wait()
		if got := q.turns[0].getsIt; got > 27*time.Second {
			t.Errorf("the other run got the slot after %s, want 25 s", got)
		}
		<-time.After(time.Hour)
	})
}

// A run that the site's own limit refuses has no use for a free slot, so others need not leave it one.
func TestARefusedRunLeavesNoWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		q := &queue{y: y, began: time.Now()}
		refused, _ := y.run(1)
		other, _ := y.run(1)
		tries := 0
		q.wg.Go(func() {
			err := refused.Admit(t.Context(), y.machine("m00"), 0, func(context.Context, *throttle.Machine) error {
				if tries++; tries < 10 {
					return errRefused
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		q.add(t, other, "m01", time.Minute, time.Minute)
		q.wg.Wait()
		if waited := q.turns[0].getsIt - q.turns[0].queued; waited > 2*time.Second {
			t.Errorf("the other run waited for %s", waited)
		}
		<-time.After(time.Hour)
	})
}

// Two runs may have different limits. The lower one cannot use a slot above its own limit, so the other one takes it.
func TestARunWithALowerLimitKeepsNoSlotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(4)
		y.change("m00", func(m *throttle.Machine) { m.Busy = true })
		q := &queue{y: y, began: time.Now()}
		low, theirs := y.run(1)
		high, _ := y.run(2)
		q.add(t, low, "m01", 0, time.Minute)
		q.add(t, high, "m02", time.Minute, time.Minute)
		<-time.After(2 * time.Minute)
		if len(q.turns) != 1 || q.turns[0].getsIt > 62*time.Second {
			t.Errorf("the turns are %v, want m02 at once", q.turns)
		}
		theirs.kill()
		<-time.After(time.Hour)
		q.wg.Wait()
	})
}

// While no machine waits, words cost nothing: each round creates and deletes a record.
func TestWordsCostNothingWithoutWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(9)
		l, _ := y.run(9)
		for _, id := range y.ids() {
			y.admitAll(t, l, time.Hour, id)
		}
		synctest.Wait()
		if y.taken() != 9 || y.tried != 9 || y.replaced != 0 || y.read != 0 || y.deleted != 9 {
			t.Errorf("%d records of %d, %d replaced, %d read, %d deleted; want 9 created and deleted", y.taken(), y.tried, y.replaced,
				y.read, y.deleted)
		}
		<-time.After(2 * time.Hour)
	})
}

// A run whose machines wait renews its word every 30 seconds, by a round: it marks its record, takes it, and leaves it again.
func TestAWaitingRunRenewsItsWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(3)
		y.change("m00", func(m *throttle.Machine) { m.Busy = true })
		l, _ := y.run(1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = l.Admit(ctx, y.machine("m01"), 0, y.clean("m01", time.Minute)) }()
		<-time.After(15 * time.Second)
		y.mu.Lock()
		before := y.tried + y.replaced + y.read + y.deleted
		y.mu.Unlock()
		<-time.After(10 * time.Minute)
		y.mu.Lock()
		if got := y.tried + y.replaced + y.read + y.deleted - before; got != 20*4 {
			t.Errorf("%d requests in ten minutes, want four in 30 s", got)
		}
		y.mu.Unlock()
		stop()
		<-time.After(time.Hour)
		if left := y.left(); left != 0 {
			t.Errorf("%d records are left", left)
		}
	})
}
