// Package polling answers the reads of many callers by few requests: a Batch the reads of a refresh, and a Watch the waiting for changes.
package polling

import (
	"context"
	"sync"
	"time"
)

// snapshotAge is how old a list may be when it answers a refresh. A refresh of thousands of resources needs one list within this
// time.
const snapshotAge = time.Minute

// fewReads is how many reads within snapshotAge are single GETs. More reads are probably part of a refresh.
const fewReads = 2

// Batch answers reads of single objects. A single read is one GET. Reads that arrive during a request, or after a few other reads,
// are answered together from one list of all objects, and so are later reads while the list is recent. After a write by this
// process a list does not answer for the written object any more.
type Batch[T any] struct {
	one func(ctx context.Context, id string) (*T, error)
	all func(ctx context.Context) (map[string]*T, error)

	Absent *T // the answer for an object that is not in the list; nil: read it by a GET

	listing chan struct{} // holds a value while FullList requests a list, so that all its callers share that list

	mu      sync.Mutex
	busy    bool
	waiting map[string][]chan result[T] // by id: the callers that wait for the next list
	list    map[string]*T
	listed  time.Time            // when the list was requested
	written map[string]time.Time // last write by this process
	began   time.Time            // when the present series of single reads started
	singles int                  // how many reads the series has
}

type result[T any] struct {
	value *T
	err   error
	retry bool // call retry: the caller that sent the request was interrupted
}

// NewBatch returns a Batch that reads one object by a function, and all of them, by identifier, by another one.
func NewBatch[T any](one func(context.Context, string) (*T, error), all func(context.Context) (map[string]*T, error)) *Batch[T] {
	return &Batch[T]{
		one: one, all: all, waiting: map[string][]chan result[T]{}, written: map[string]time.Time{},
		listing: make(chan struct{}, 1),
	}
}

// Get returns the object, or an error that api.IsNotFound recognises.
func (b *Batch[T]) Get(ctx context.Context, id string) (*T, error) {
	for {
		b.mu.Lock()
		if value, ok := b.cached(id); ok {
			b.mu.Unlock()
			return value, nil
		}
		idle := !b.busy
		b.busy = true
		if idle && b.single() {
			b.mu.Unlock()
			return b.fetchOne(ctx, id)
		}
		answer := make(chan result[T], 1)
		b.waiting[id] = append(b.waiting[id], answer)
		b.mu.Unlock()
		if idle {
			b.fetchAll(ctx)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-answer:
			if !r.retry {
				return r.value, r.err
			}
		}
	}
}

// cached returns an object from the list; b.mu is held. It returns false for an object that must be read by a GET.
func (b *Batch[T]) cached(id string) (*T, bool) {
	if b.list == nil || time.Since(b.listed) > snapshotAge || !b.listed.After(b.written[id]) {
		return nil, false
	}
	if value, ok := b.list[id]; ok {
		return value, true
	}
	return b.Absent, b.Absent != nil
}

// FullList returns a list of all objects that is recent and newer than the last write.
func (b *Batch[T]) FullList(ctx context.Context) (map[string]*T, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case b.listing <- struct{}{}:
	}
	defer func() { <-b.listing }()
	b.mu.Lock()
	list := b.list
	for _, written := range b.written {
		if !b.listed.After(written) {
			list = nil
		}
	}
	if time.Since(b.listed) > snapshotAge {
		list = nil
	}
	b.mu.Unlock()
	if list != nil {
		return list, nil
	}
	asked := time.Now()
	list, err := b.all(ctx)
	if err == nil {
		b.keep(list, asked)
	}
	return list, err
}

// keep stores a list for later reads, unless there is a newer one.
func (b *Batch[T]) keep(list map[string]*T, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if asked.After(b.listed) {
		b.list, b.listed = list, asked
	}
}

// single counts a read that comes alone, and reports whether to answer it by a single GET; b.mu is held.
func (b *Batch[T]) single() bool {
	if time.Since(b.began) > snapshotAge {
		b.began, b.singles = time.Now(), 0
	}
	b.singles++
	return b.singles <= fewReads
}

// fetchAll answers the waiting callers from one list.
func (b *Batch[T]) fetchAll(ctx context.Context) {
	defer b.release()
	b.serve(ctx)
}

// fetchOne reads one object, then answers the callers that came in the meantime from one list. It releases all waiting callers
// however it ends.
func (b *Batch[T]) fetchOne(ctx context.Context, id string) (*T, error) {
	defer b.release()
	value, err := b.read(ctx, id)
	b.serve(ctx)
	return value, err
}

// release makes the batch idle. It makes waiting callers call again, because the caller that sent the request was interrupted or
// panicked.
func (b *Batch[T]) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = false
	for _, answers := range b.waiting {
		for _, answer := range answers {
			answer <- result[T]{retry: true}
		}
	}
	b.waiting = map[string][]chan result[T]{}
}

// serve answers all waiting callers, and those that join them, from one list.
func (b *Batch[T]) serve(ctx context.Context) {
	b.mu.Lock()
	waited := len(b.waiting) > 0
	b.mu.Unlock()
	if !waited {
		return
	}
	asked := time.Now()
	list, err := b.all(ctx)
	if err == nil {
		b.keep(list, asked)
	}
	for ctx.Err() == nil {
		id, answers := b.next()
		if answers == nil {
			return
		}
		b.answer(ctx, id, answers, err)
	}
}

// next removes one object and its waiting callers from the queue; nil if the queue is empty.
func (b *Batch[T]) next() (string, []chan result[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, answers := range b.waiting {
		delete(b.waiting, id)
		return id, answers
	}
	return "", nil
}

// answer sends the callers that wait for an object its value from the list, or the error of the list.
func (b *Batch[T]) answer(ctx context.Context, id string, answers []chan result[T], err error) {
	r := result[T]{retry: true} // if this panics
	defer func() {
		for _, answer := range answers {
			answer <- r
		}
	}()
	var value *T
	if err == nil {
		value, err = b.fromList(ctx, id)
	}
	r = result[T]{value: value, err: err, retry: ctx.Err() != nil}
}

// fromList returns an object from the list. It reads an object by a GET if the list lacks it or is older than its last write.
func (b *Batch[T]) fromList(ctx context.Context, id string) (*T, error) {
	b.mu.Lock()
	value, ok := b.cached(id)
	b.mu.Unlock()
	if ok {
		return value, nil
	}
	return b.read(ctx, id)
}

// read reads an object by a GET. A list that lacks an object which exists answers no more.
func (b *Batch[T]) read(ctx context.Context, id string) (*T, error) {
	b.mu.Lock()
	listed := b.listed
	lacking := b.list != nil && b.list[id] == nil && listed.After(b.written[id])
	b.mu.Unlock()
	value, err := b.one(ctx, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if lacking && err == nil && b.listed.Equal(listed) {
		b.list = nil
	}
	return value, err
}

// Invalidate records that this process has changed an object, so that earlier lists do not answer for it any more.
func (b *Batch[T]) Invalidate(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written[id] = time.Now()
}

// HasWritten reports whether this process has changed any object.
func (b *Batch[T]) HasWritten() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.written) > 0
}
