package polling

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// How polling adapts.
const (
	youngFor   = 10 * time.Second       // how long a waiter counts as young and is polled at short intervals
	firstPoll  = 500 * time.Millisecond // time to the first poll; each later interval is longer by half
	fewYoung   = 8                      // largest number of young waiters that are polled by single GETs
	fewOld     = 3                      // largest number of older waiters that are polled by single GETs
	oldFirst   = time.Second            // the shortest interval between polls of an older waiter
	oldShare   = 20                     // that interval is this share of the time that the object has been in its state
	allShare   = 6                      // who waits for all objects waits at most this share of the longest interval
	restAlone  = 20                     // the pause after a list, as a multiple of its duration
	restShared = 40                     // the same while other runs have operations in progress
)

// Watch waits for objects to change. It polls only while there are waiters. A few waiters are polled by single GETs, each in its
// own goroutine; many waiters share lists of all objects, which one goroutine requests. A new waiter is polled at short intervals.
// The interval of an older one grows with the time that its object has been in its state. A list answers all waiters, so the object
// that changed last decides when it is requested.
type Watch[T any] struct {
	one      func(ctx context.Context, id string) (*T, error)
	all      func(ctx context.Context) (map[string]*T, error)
	interval time.Duration                // the longest time between two polls
	Others   func(all map[string]*T) bool // reports whether other runs have operations in progress; nil: unknown
	State    func(value *T) string        // the state of an object; nil: it has none

	mu      sync.Mutex
	waiters map[*waiter[T]]struct{}
	waits   map[string]*wait // by id
	lister  bool             // whether a goroutine requests lists
	wake    chan struct{}    // tells it that a waiter has come or left
	listed  time.Time        // when the last list was requested
	free    time.Time        // when the next list may be requested
}

// NewWatch returns a Watch that reads one object by a function, and all of them, by identifier, by another one. interval is the longest
// time between two polls.
func NewWatch[T any](interval time.Duration, one func(context.Context, string) (*T, error),
	all func(context.Context) (map[string]*T, error),
) *Watch[T] {
	return &Watch[T]{
		one: one, all: all, interval: interval,
		waiters: map[*waiter[T]]struct{}{}, waits: map[string]*wait{}, wake: make(chan struct{}, 1),
	}
}

// Poll waits for the next poll of an object, and returns the object and when the request for it began. It returns api.ErrNoPoll if no poll
// comes within the given time, one of api.KindBlind if polls have failed for the last minute of it, ctx's error if ctx ends, and an error
// that api.IsNotFound recognises if the object does not exist any more. It repeats failed polls as api.Patience says.
func (w *Watch[T]) Poll(ctx context.Context, id string, within time.Duration) (value *T, asked time.Time, err error) {
	p := w.poll(ctx, id, within)
	return p.value, p.asked, p.err
}

// Next is Poll without the time of the request.
func (w *Watch[T]) Next(ctx context.Context, id string, within time.Duration) (*T, error) {
	p := w.poll(ctx, id, within)
	return p.value, p.err
}

// poll is Poll with the result as one value. The waiter waits for a list of others, for its own next poll, and for the end of its time.
// When its poll is due, it reads its object alone if few wait, and otherwise asks for a list.
func (w *Watch[T]) poll(ctx context.Context, id string, timeout time.Duration) poll[T] {
	me, pause := w.join(id)
	defer w.leave(me)
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	due := time.NewTimer(pause)
	defer due.Stop()
	for {
		select {
		case <-within.Done():
			return poll[T]{err: w.noPoll(ctx, me)}
		case listed := <-me.got:
			if !listed.missing {
				return listed
			}
			// A list may lack an object that exists. The waiter asks for it.
		case <-due.C:
			if !w.alone(ctx, me) {
				continue // the list comes by me.got
			}
		}
		var own poll[T]
		own, pause = w.single(within, me)
		ended := within.Err() != nil // then the next round says what the error is
		if own.err == nil || !ended && !w.goesOn(me, own.err) {
			return own
		}
		due.Reset(pause)
	}
}

// goesOn reports whether a waiter continues after its poll has failed.
func (w *Watch[T]) goesOn(me *waiter[T], err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return me.outlasts(err)
}

// noPoll returns the error of a waiter whose time, or whose ctx, has ended.
func (w *Watch[T]) noPoll(ctx context.Context, me *waiter[T]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := me.fails.Blind(); err != nil {
		return api.Blind(err)
	}
	return api.ErrNoPoll
}

// NextAll waits for the next list of all objects, which is requested like that of an older waiter for the object that changed last, or
// sooner. Its errors are those of Next.
func (w *Watch[T]) NextAll(ctx context.Context) (map[string]*T, error) {
	me := &waiter[T]{got: make(chan poll[T], 1)}
	w.mu.Lock()
	w.waiters[me] = struct{}{}
	w.wantList(ctx, me, w.intervalOfAll())
	w.mu.Unlock()
	defer w.leave(me)
	select {
	case p := <-me.got:
		return p.all, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// intervalOfAll returns the interval between lists for those who wait for all objects; mu is held.
func (w *Watch[T]) intervalOfAll() time.Duration {
	longest := min(max(w.interval/allShare, oldFirst), w.interval)
	var last time.Time
	for _, wait := range w.waits {
		if wait.entered.After(last) {
			last = wait.entered
		}
	}
	return intervalAfter(time.Since(last), longest)
}

// join adds a waiter for an object, and returns the time to its poll. The wait continues from the previous poll unless the caller
// was away for longer than an interval.
func (w *Watch[T]) join(id string) (me *waiter[T], pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if len(w.waits) > 2*len(w.waiters)+100 {
		maps.DeleteFunc(w.waits, func(_ string, old *wait) bool { return now.Sub(old.last) > w.interval })
	}
	mine := w.waits[id]
	if mine == nil || now.Sub(mine.last) > w.interval {
		mine = &wait{since: now, entered: now, last: now, gap: min(firstPoll, w.interval)}
		w.waits[id] = mine
	}
	me = &waiter[T]{id: id, wait: mine, got: make(chan poll[T], 1)}
	w.waiters[me] = struct{}{}
	return me, time.Until(mine.due())
}

// Restart makes the next wait for an object start with short intervals, because this process has requested a change of it.
func (w *Watch[T]) Restart(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waits, id)
}

// leave removes a waiter, answered or not.
func (w *Watch[T]) leave(me *waiter[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters, me)
	w.hint()
}

// note records a poll of a wait; mu is held.
func (w *Watch[T]) note(m *wait, value *T, err error) {
	switch {
	case err != nil || value == nil:
		m.failed(w.interval)
	case w.State == nil:
		m.answered("", w.interval)
	default:
		m.answered(w.State(value), w.interval)
	}
}

// alone reports whether to poll a waiter by a single GET. If not, a list answers it.
func (w *Watch[T]) alone(ctx context.Context, me *waiter[T]) bool {
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
	w.wantList(ctx, me, me.wait.gap)
	return false
}

// single polls the object of a waiter, and returns the time to its next poll.
func (w *Watch[T]) single(ctx context.Context, me *waiter[T]) (p poll[T], pause time.Duration) {
	p.asked = time.Now()
	p.value, p.err = w.get(ctx, me.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	me.listAt = time.Time{}
	w.note(me.wait, p.value, p.err)
	return p, time.Until(me.wait.due())
}

// get reads one object. A panic is an error of the poll.
func (w *Watch[T]) get(ctx context.Context, id string) (value *T, err error) {
	defer routine.Recover(&err)
	return w.one(ctx, id)
}
