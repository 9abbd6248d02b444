package polling

import (
	"context"
	"maps"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// wantList records that a waiter needs a list, which is requested no sooner than `after` the last one, and starts the lister; mu
// is held.
func (w *Watch[T]) wantList(ctx context.Context, me *waiter[T], after time.Duration) {
	me.listAt = time.Now()
	if at := w.listed.Add(after); at.After(me.listAt) {
		me.listAt = at
	} else if me.wait == nil {
		me.listAt = me.listAt.Add(after) // the caller has just listed everything
	}
	if !w.lister {
		w.lister = true
		ctx := context.WithoutCancel(ctx)
		routine.Go(func() { w.lists(ctx) }, w.fail)
	}
	w.hint()
}

// hint tells the lister that the waiters have changed.
func (w *Watch[T]) hint() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// lists requests lists until no waiter needs one. ctx carries the logger and the span of the first waiter.
func (w *Watch[T]) lists(ctx context.Context) {
	for {
		at, wanted := w.nextList()
		if !wanted {
			return
		}
		if pause := time.Until(at); pause > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-w.wake:
			}
			timer.Stop()
			continue
		}
		w.list(ctx)
	}
}

// fail ends the wait of all waiters after a panic of the lister.
func (w *Watch[T]) fail(err *routine.PanicError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lister = false
	for other := range w.waiters {
		w.tell(other, nil, err)
	}
}

// nextList returns when to request the next list. If no waiter needs one, the lister has ended.
func (w *Watch[T]) nextList() (at time.Time, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range w.waiters {
		if !other.listAt.IsZero() && (!wanted || other.listAt.Before(at)) {
			at, wanted = other.listAt, true
		}
	}
	if at.Before(w.free) {
		at = w.free
	}
	w.lister = wanted
	return at, wanted
}

// list requests a list and answers all waiters that waited when it started. After an error that they outlast, the waiters that need a
// list continue to wait.
func (w *Watch[T]) list(ctx context.Context) {
	w.mu.Lock()
	waiting := maps.Clone(w.waiters)
	w.listed = time.Now()
	w.mu.Unlock()
	began := time.Now()
	all, pauses, err := w.everything(ctx)
	pause := pauses * time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.free = time.Now().Add(pause)
	}
	for other := range waiting {
		if _, waits := w.waiters[other]; !waits {
			continue
		}
		if err != nil && other.outlasts(err) {
			w.putOff(other)
			continue
		}
		w.tell(other, all, err)
	}
}

// everything requests a list. It also returns the length of the following pause, as a multiple of the request's duration. A panic
// is an error of the list.
func (w *Watch[T]) everything(ctx context.Context) (all map[string]*T, pauses time.Duration, err error) {
	defer routine.Recover(&err)
	if all, err = w.all(ctx); err != nil {
		return nil, restAlone, err
	}
	if w.Others != nil && w.Others(all) {
		return all, restShared, nil
	}
	return all, restAlone, nil
}

// putOff delays the list that a waiter needs; mu is held.
func (w *Watch[T]) putOff(other *waiter[T]) {
	switch {
	case other.listAt.IsZero():
	case other.wait == nil:
		other.listAt = time.Now().Add(w.interval)
	default:
		other.wait.failed(w.interval)
		other.listAt = other.wait.due()
	}
}

// tell gives a waiter its value from a list, or the list's error; mu is held.
func (w *Watch[T]) tell(other *waiter[T], all map[string]*T, err error) {
	p := poll[T]{all: all, asked: w.listed, err: err}
	if other.wait != nil {
		p.value = all[other.id]
		p.missing = p.value == nil && err == nil
		w.note(other.wait, p.value, err)
	}
	other.listAt = time.Time{}
	select {
	case other.got <- p:
	default: // the waiter polls on its own already
		return
	}
	if !p.missing {
		delete(w.waiters, other)
	}
}
