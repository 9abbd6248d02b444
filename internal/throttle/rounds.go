package throttle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// Times of a round. A verb is cancelled when the lock is lost (Locks.renewed); another run may take the lock over after the rest of the
// lease. The limit can be exceeded only if a conductor or the network delays a request for longer than that
// (reference/limit.md#what-a-lock-guarantees).
const (
	roundFor    = 20 * time.Second       // a round that takes longer, besides its list, sends one verb, so that other runs get their turn
	gatherFor   = 200 * time.Millisecond // before a round, so that machines that arrive together share its lock and list
	freshFor    = 10 * time.Second       // how long the list of a round may serve as the read before a verb
	backOffFrom = 10 * time.Second       // after a refusal by the site's own limit
)

var errSend = errors.New("the verb was not sent") // a panic of its Send

// enqueue adds a waiter to the queue, and starts rounds if none are running.
func (l *Limiter) enqueue(ctx context.Context, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, w.told = append(l.queue, w), 0
	if l.running {
		return
	}
	before := l.ended
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.running = true
	l.ended = routine.Go(func() {
		if before != nil {
			<-before
		}
		ctx, span := tracing.Start(tracing.AboutSeveral(ctx), "admissions")
		defer tracing.End(span, nil)
		l.run(ctx)
	}, func(err *routine.PanicError) { l.broken(ctx, err) })
}

// broken ends the wait of all machines after a panic outside a round.
func (l *Limiter) broken(ctx context.Context, err *routine.PanicError) {
	l.site.Log(ctx, slog.LevelError, "admissions have failed", "panic", err.Value, "stack", err.Stack)
	l.fail(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
	l.stop()
}

// dequeue removes a waiter whose caller has stopped waiting, and reports whether it was still in the queue.
func (l *Limiter) dequeue(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, w)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// run runs rounds while machines wait: at once if there may be a free slot, otherwise when the next list, which all polls share,
// shows one. Waiting for a slot sends no request of its own. A round that fails with a transient error is repeated; any other
// error ends the wait of all machines.
func (l *Limiter) run(ctx context.Context) {
	defer l.withdraw(ctx)
	mayHaveRoom := true
	for l.waiting(ctx) {
		again, err := l.try(ctx, mayHaveRoom)
		l.tellPlaces()
		mayHaveRoom = again
		if err == nil || ctx.Err() != nil {
			continue
		}
		l.site.Log(ctx, slog.LevelWarn, "a round of admissions failed", "error", err)
		if panicked, is := errors.AsType[*routine.PanicError](err); is {
			l.site.Log(ctx, slog.LevelError, "panic in a round of admissions", "panic", panicked.Value, "stack", panicked.Stack)
		} else if !l.site.MayPass(err) {
			l.fail(err)
			continue
		}
		_ = rest.Sleep(ctx, l.poll) // waiting checks ctx
		mayHaveRoom = true
	}
}

// withdraw removes the words of this run when no machine waits any more, so that others do not wait for it until they expire.
func (l *Limiter) withdraw(ctx context.Context) {
	l.mu.Lock()
	none := l.worded.IsZero()
	l.mu.Unlock()
	if none {
		return
	}
	_, found, locked, unlock, err := l.lock(context.WithoutCancel(ctx), rest.AnswerGrace)
	if err != nil {
		l.site.Log(ctx, slog.LevelInfo, "other runs may wait for this one for up to a minute, because it could not say that its machines "+
			"wait no more", "error", err)
		return
	}
	if locked {
		unlock(l.leave(found, nil, false))
	} else {
		unlock(nil)
	}
}

// waiting reports whether a machine waits for a slot. If none does, the rounds end.
func (l *Limiter) waiting(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return false // stopped: the next waiter starts new rounds
	}
	if len(l.queue) == 0 {
		l.running = false
		l.stop()
	}
	return l.running
}

// fail gives all waiting machines the reason why no machine gets a slot.
func (l *Limiter) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.queue {
		w.outcome <- &fault.Error{
			Kind: KindQueue, Fact: fmt.Sprintf("wait for a slot of provisioning_limit: %v", err), Err: err,
			Elsewhere: true,
		}
	}
	l.queue = nil
}

// try runs a round if there may be a free slot. A panic fails this round only.
func (l *Limiter) try(ctx context.Context, mayHaveRoom bool) (again bool, err error) {
	defer routine.Recover(&err)
	if l.holdBack(ctx) {
		return true, nil
	}
	if mayHaveRoom {
		if err := rest.Sleep(ctx, gatherFor); err != nil {
			return true, err
		}
		return l.round(ctx)
	}
	machines, err := l.next(ctx)
	if err != nil {
		return false, fmt.Errorf("count the machines with an operation in progress: %w", err)
	}
	if machines != nil {
		if d, _ := l.decide(machines, nil); len(d.Go) == 0 {
			return false, nil
		}
	}
	return l.round(ctx)
}

// round admits machines. If the site's own limit refuses a verb, it waits without the lock, so that other runs can admit machines.
// It reports whether there may be more free slots.
func (l *Limiter) round(ctx context.Context) (again bool, err error) {
	again, err = l.admitQueue(ctx)
	if l.site.Refused(err) {
		return true, rest.Sleep(ctx, backOffFrom+rand.N(2*backOffFrom)) //nolint:gosec // jitter
	}
	return again, err
}

// admitQueue admits the machines for which there is a slot, under the lock and by a new list. It reports whether there may be more
// free slots; the error may be the site's refusal.
func (l *Limiter) admitQueue(ctx context.Context) (again bool, err error) {
	held, found, locked, unlock, err := l.lock(ctx, 0)
	if err != nil {
		return true, fmt.Errorf("take the lock of the limit: %w", err)
	}
	failed, considered := []func(){}, l.waiters()
	defer func() {
		if locked {
			unlock(l.leave(found, considered, l.site.Refused(err)))
		} else {
			unlock(nil)
		}
		for _, tell := range failed {
			tell()
		}
	}()
	l.forgetFreed()
	asked := time.Now()
	machines, err := l.site.Machines(held)
	if err != nil {
		return true, fmt.Errorf("count the machines with an operation in progress: %w", err)
	}
	listed := time.Now()
	if took := listed.Sub(asked); took > tellEvery {
		l.site.Log(ctx, slog.LevelInfo, "the list of machines, which each round of admissions needs, is slow", "took",
			took.Round(time.Second))
	}
	var d Decision
	d, considered = l.decide(machines, l.others(found))
	l.tellYields(ctx, d)
	for i, t := range d.Go {
		if i > 0 && time.Since(listed) > roundFor || held.Err() != nil {
			return true, nil
		}
		if w := l.take(t); w != nil {
			var seen *Machine
			usable := locked && time.Since(asked) < freshFor && w.arrived.Before(asked)
			if i := slices.IndexFunc(machines, func(m Machine) bool { return m.ID == t.ID }); i >= 0 && usable {
				seen = &machines[i]
			}
			tell, err := l.send(ctx, held, w, seen)
			failed = append(failed, tell)
			if l.site.Refused(err) {
				return true, err
			}
		}
	}
	return l.roomFor(d), nil
}

// take removes the waiter with a ticket from the queue and returns it; nil if it has left.
func (l *Limiter) take(t Ticket) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.queue, func(w *waiter) bool { return w.Ticket == t })
	if i < 0 {
		return nil
	}
	w := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	return w
}

// send sends a waiter's verb and gives the waiter its outcome if it was sent. A verb that the site refuses returns to its place in
// the queue. Any other failure is returned as tell, which the caller must call when it has released the lock: a run may end with the
// failure of its last machine.
func (l *Limiter) send(ctx, held context.Context, w *waiter, seen *Machine) (tell func(), err error) {
	waited := time.Since(w.Queued)
	w.log(fmt.Sprintf("has a slot after %s", waited.Round(100*time.Millisecond)), "waited", waited)
	err = l.guarded(ctx, held, w, seen)
	switch {
	case err == nil:
		l.mu.Lock()
		l.stats.admitted(w.ID, time.Since(w.Queued), l.poll)
		l.mu.Unlock()
		w.outcome <- nil
	case l.site.Refused(err) && !w.left():
		w.log("waits again: Ironic's own limit has refused the operation")
		if l.enqueue(ctx, w); w.left() && l.dequeue(w) { // its caller has looked for it before
			return func() { w.outcome <- err }, nil
		}
	default:
		return func() { w.outcome <- err }, err
	}
	return func() {}, err
}

// guarded sends a waiter's verb and stores a panic for the waiter's own goroutine.
func (l *Limiter) guarded(ctx, held context.Context, w *waiter, seen *Machine) (err error) {
	err = func() (err error) {
		defer routine.Recover(&err)
		return w.send(held, seen)
	}()
	if panicked, is := errors.AsType[*routine.PanicError](err); is {
		l.site.Log(ctx, slog.LevelError, "panic while a verb was sent", "panic", panicked.Value, "stack", panicked.Stack)
		w.panicked, err = panicked.Value, errSend
	}
	return err
}

// lockName is the name of the lock of the limit, the same in all versions of this provider.
const lockName = "admission"

// The lock of the limit.
const (
	lockDescription = "terraform-provider-metal: admission lock, held for seconds"
	longestHold     = 10 * time.Minute // of the lock by a run: a round has a list, and sends verbs for roundFor
)

// lock takes the lock of the limit, if the limit has one, and returns the function that releases it. held ends when the lock is lost. If
// the user may not write records, there is no lock from then on, and the user gets one notice.
func (l *Limiter) lock(
	ctx context.Context, within time.Duration,
) (held context.Context, found Found, locked bool, unlock func(leave []Word), err error) {
	l.mu.Lock()
	without := l.unlocked || l.limit.Coordination != CoordinationIronic
	l.mu.Unlock()
	if without {
		return ctx, found, false, func([]Word) {}, nil
	}
	held, found, unlock, err = l.locks.take(ctx, Lock{
		Name: lockName, Description: lockDescription, For: "start operations within provisioning_limit", Wait: within, Hold: longestHold,
	})
	if fault.Is(err, kindNotAllowed) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unlocked = true
		l.stats.notLocked(err)
		return held, found, false, unlock, nil
	}
	return held, found, err == nil, unlock, err
}

func (l *Limiter) roomFor(d Decision) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.queue, func(w *waiter) bool {
		room, known := d.Room[w.Scope]
		return !known || room > 0
	})
}

func (l *Limiter) decide(machines []Machine, others []Word) (d Decision, waiting []Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	census, tickets := l.census(machines, l.site.Now()), l.tickets()
	census.Taken = l.passed(machines, census.Taken)
	d = Decide(l.limit, census, tickets, others...)
	l.stats.decided(census, d, l.own, len(tickets))
	l.tellStuck(d.Stuck, machines)
	return d, tickets
}

// waiters returns the tickets of the queue.
func (l *Limiter) waiters() []Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickets()
}

// tickets is waiters; mu is held.
func (l *Limiter) tickets() []Ticket {
	var all []Ticket
	for _, w := range l.queue {
		all = append(all, w.Ticket)
	}
	return all
}
