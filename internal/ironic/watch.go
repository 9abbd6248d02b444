package ironic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// How polling adapts.
const (
	youngFor   = 10 * time.Second       // how long a waiter counts as young and is polled at short intervals
	firstPoll  = 500 * time.Millisecond // time to the first poll; each later interval is longer by half
	fewYoung   = 8                      // largest number of young waiters that are polled by single GETs
	fewOld     = 3                      // largest number of older waiters that are polled by single GETs
	restAlone  = 20                     // the pause after a list, as a multiple of its duration
	restShared = 40                     // the same while other runs have operations in progress
)

// watch waits for objects to change. It polls only while there are waiters. A few waiters are polled by single GETs, each in its
// own goroutine; many waiters share lists of all objects, which one goroutine requests. A new waiter is polled at short intervals,
// an older one once per interval.
type watch[T any] struct {
	one      func(ctx context.Context, id string) (*T, error)
	all      func(ctx context.Context) (map[string]*T, error)
	interval time.Duration                // the longest time between two polls
	others   func(all map[string]*T) bool // reports whether other runs have operations in progress; nil: unknown

	mu      sync.Mutex
	waiters map[*waiter[T]]struct{}
	waits   map[string]*wait // by id
	lister  bool             // whether a goroutine requests lists
	wake    chan struct{}    // tells it that a waiter has come or left
	listed  time.Time        // when the last list was requested
	free    time.Time        // when the next list may be requested
}

// wait is the waiting for one object, over many polls.
type wait struct {
	since, last time.Time     // when it started, and when it was last answered
	gap         time.Duration // time to the next poll
}

// waiter waits for one poll: of an object, or of all objects if it has no wait.
type waiter[T any] struct {
	id     string
	wait   *wait
	listAt time.Time // when it needs a list; zero: it needs none
	fails  Patience
	got    chan poll[T]
}

// poll is the result of a poll.
type poll[T any] struct {
	all   map[string]*T
	value *T
	asked time.Time // when the request began
	err   error

	missing bool // the list lacks the object: it was deleted, or moved between two pages
}

func newWatch[T any](interval time.Duration, one func(context.Context, string) (*T, error), all func(context.Context) (map[string]*T, error)) *watch[T] {
	return &watch[T]{
		one: one, all: all, interval: interval,
		waiters: map[*waiter[T]]struct{}{}, waits: map[string]*wait{}, wake: make(chan struct{}, 1),
	}
}

// ErrNoPoll says that no poll has returned the object within the time that the caller gave.
var ErrNoPoll = errors.New("no poll in time")

// ErrPanic says that a poll panicked. Other waiters continue.
var ErrPanic = errors.New("panic")

// next is poll without the time of the request.
func (w *watch[T]) next(ctx context.Context, id string, timeout time.Duration) (*T, error) {
	p := w.poll(ctx, id, timeout)
	return p.value, p.err
}

// poll waits for the next poll of an object and returns the object. It returns ErrNoPoll if no poll comes within the given time, a
// BlindError if polls have failed for the last minute of it, ctx's error if ctx ends, and an error that IsNotFound recognises if the object
// does not exist any more. It repeats failed polls as Patience says.
func (w *watch[T]) poll(ctx context.Context, id string, timeout time.Duration) poll[T] {
	me, pause := w.join(id)
	defer w.leave(me)
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	due := time.NewTimer(pause)
	defer due.Stop()
	for {
		select {
		case p := <-me.got:
			if !p.missing {
				return p
			}
		case <-due.C:
			if !w.alone(ctx, me) {
				continue // a list will show whether it is gone
			}
		case <-within.Done():
			if ctx.Err() != nil {
				return poll[T]{err: ctx.Err()}
			}
			return poll[T]{err: w.noPoll(me)}
		}
		asked := time.Now()
		value, err := w.single(within, id)
		pause = w.answered(me)
		if err == nil || within.Err() == nil && !w.goesOn(me, err) {
			return poll[T]{value: value, asked: asked, err: err}
		}
		due.Reset(pause)
	}
}

// goesOn reports whether a waiter continues after its poll has failed.
func (w *watch[T]) goesOn(me *waiter[T], err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return me.outlasts(err)
}

// outlasts reports whether a waiter continues after a poll has failed; mu is held. What waits for all objects has begun nothing, and so does
// not continue if Ironic denies them.
func (m *waiter[T]) outlasts(err error) bool {
	if m.wait == nil {
		return MayPass(err)
	}
	return m.fails.Outlasts(err)
}

// noPoll returns the error of a waiter whose time has ended.
func (w *watch[T]) noPoll(me *waiter[T]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := me.fails.Blind(); err != nil {
		return &BlindError{Err: err}
	}
	return ErrNoPoll
}

// nextAll waits for the next list of all objects. Its errors are those of next.
func (w *watch[T]) nextAll(ctx context.Context) (map[string]*T, error) {
	me := &waiter[T]{got: make(chan poll[T], 1)}
	w.mu.Lock()
	w.waiters[me] = struct{}{}
	w.wantList(ctx, me, w.interval)
	w.mu.Unlock()
	defer w.leave(me)
	select {
	case p := <-me.got:
		return p.all, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join adds a waiter for an object, and returns the time to its poll. The wait continues from the previous poll unless the caller
// was away for longer than an interval.
func (w *watch[T]) join(id string) (me *waiter[T], pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if len(w.waits) > 2*len(w.waiters)+100 {
		maps.DeleteFunc(w.waits, func(_ string, old *wait) bool { return now.Sub(old.last) > w.interval })
	}
	mine := w.waits[id]
	if mine == nil || now.Sub(mine.last) > w.interval {
		mine = &wait{since: now, last: now, gap: min(firstPoll, w.interval)}
		w.waits[id] = mine
	}
	me = &waiter[T]{id: id, wait: mine, got: make(chan poll[T], 1)}
	w.waiters[me] = struct{}{}
	return me, time.Until(mine.due(w.interval))
}

// restart makes the next wait for an object start with short intervals, because this process has requested a change of it.
func (w *watch[T]) restart(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waits, id)
}

// leave removes a waiter, answered or not.
func (w *watch[T]) leave(me *waiter[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters, me)
	w.hint()
}

// young reports whether a wait started recently.
func (m *wait) young() bool { return time.Since(m.since) < youngFor }

// due returns when the next poll of a wait is due.
func (m *wait) due(interval time.Duration) time.Time {
	if m.young() {
		return m.last.Add(m.gap)
	}
	return m.last.Add(interval)
}

// answered records a single poll of a waiter, and returns the time to its next poll.
func (w *watch[T]) answered(me *waiter[T]) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	me.listAt = time.Time{}
	me.wait.answered(w.interval)
	return time.Until(me.wait.due(w.interval))
}

func (m *wait) answered(interval time.Duration) {
	m.last, m.gap = time.Now(), min(m.gap*3/2, interval)
}

// alone reports whether to poll a waiter by a single GET. If not, a list answers it.
func (w *watch[T]) alone(ctx context.Context, me *waiter[T]) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.waiters[me]; !waits {
		return false // a list has just answered it
	}
	young, old := 0, 0
	for other := range w.waiters {
		switch {
		case other.wait == nil:
			old += fewOld // a list is needed anyway
		case other.wait.young():
			young++
		default:
			old++
		}
	}
	if me.wait.young() {
		if young <= fewYoung {
			return true
		}
		w.wantList(ctx, me, firstPoll)
		return false
	}
	if old <= fewOld {
		return true
	}
	w.wantList(ctx, me, w.interval)
	return false
}

// single polls one object. A panic is an error of the poll.
func (w *watch[T]) single(ctx context.Context, id string) (value *T, err error) {
	defer recoverPoll(&err)
	return w.one(ctx, id)
}

func recoverPoll(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("poll Ironic: %w: %v", ErrPanic, r)
	}
}
