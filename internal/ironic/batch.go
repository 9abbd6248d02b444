package ironic

import (
	"context"
	"sync"
	"time"
)

// snapshotAge is how old a list may be to answer a refresh from: long enough for a refresh of thousands of resources
// to live on one list, short enough to be news.
const snapshotAge = 15 * time.Second

// batch answers reads of single objects. One that comes alone is a single GET; those that come while a request is under
// way are answered together from one list of all, and so are later ones while that list is young. A write through this
// process makes the list too old for its object.
type batch[T any] struct {
	one func(ctx context.Context, id string) (*T, error)
	all func(ctx context.Context) (map[string]*T, error)

	absent *T // what it means not to be in the list; nil: ask singly

	mu      sync.Mutex
	busy    bool
	waiting map[string][]chan result[T] // by id: who waits for the next list
	list    map[string]*T
	listed  time.Time            // when the list was asked for
	written map[string]time.Time // last write by this process
}

type result[T any] struct {
	value *T
	err   error
	again bool // ask again: the one who fetched was interrupted
}

func newBatch[T any](one func(context.Context, string) (*T, error), all func(context.Context) (map[string]*T, error)) *batch[T] {
	return &batch[T]{one: one, all: all, waiting: map[string][]chan result[T]{}, written: map[string]time.Time{}}
}

// get returns the object, or an error for which IsNotFound holds.
func (b *batch[T]) get(ctx context.Context, id string) (*T, error) {
	for {
		b.mu.Lock()
		if value, ok := b.cached(id); ok {
			b.mu.Unlock()
			return value, nil
		}
		if !b.busy {
			b.busy = true
			b.mu.Unlock()
			return b.fetchOne(ctx, id)
		}
		answer := make(chan result[T], 1)
		b.waiting[id] = append(b.waiting[id], answer)
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-answer:
			if !r.again {
				return r.value, r.err
			}
		}
	}
}

// cached looks into the list; b.mu is held. An object that the list lacks is asked for singly.
func (b *batch[T]) cached(id string) (*T, bool) {
	if b.list == nil || time.Since(b.listed) > snapshotAge || !b.listed.After(b.written[id]) {
		return nil, false
	}
	if value, ok := b.list[id]; ok {
		return value, true
	}
	return b.absent, b.absent != nil
}

// fetchOne reads one object, then serves those who came meanwhile from one list.
func (b *batch[T]) fetchOne(ctx context.Context, id string) (*T, error) {
	value, err := b.one(ctx, id)
	b.mu.Lock()
	waiting := b.waiting
	b.waiting = map[string][]chan result[T]{}
	if len(waiting) == 0 {
		b.busy = false
	}
	b.mu.Unlock()
	if len(waiting) > 0 {
		b.serve(ctx, waiting)
	}
	return value, err
}

// serve answers all who wait, and those who join them, from a list; then the batch is idle again.
func (b *batch[T]) serve(ctx context.Context, waiting map[string][]chan result[T]) {
	asked := time.Now()
	list, err := b.all(ctx)
	if err == nil {
		b.mu.Lock()
		b.list, b.listed = list, asked
		b.mu.Unlock()
	}
	for len(waiting) > 0 {
		for id, answers := range waiting {
			r := result[T]{err: err, again: ctx.Err() != nil}
			if err == nil {
				r.value, r.err = b.fromList(ctx, id)
			}
			for _, answer := range answers {
				answer <- r
			}
		}
		b.mu.Lock()
		waiting = b.waiting
		b.waiting = map[string][]chan result[T]{}
		if len(waiting) == 0 {
			b.busy = false
		}
		b.mu.Unlock()
	}
}

// fromList takes an object from a list. One that was written since, or that the list lacks, is asked for singly.
func (b *batch[T]) fromList(ctx context.Context, id string) (*T, error) {
	b.mu.Lock()
	value, ok := b.cached(id)
	b.mu.Unlock()
	if ok {
		return value, nil
	}
	return b.one(ctx, id)
}

// invalidate notes that this process has changed an object: lists from before do not answer for it any more.
func (b *batch[T]) invalidate(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written[id] = time.Now()
}
