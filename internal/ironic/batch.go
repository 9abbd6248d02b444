package ironic

import (
	"context"
	"sync"
	"time"
)

// snapshotAge is how old a list may be to answer a refresh from: long enough for a refresh of thousands of resources
// to live on one list, short enough to be news.
const snapshotAge = time.Minute

// fewReads is how many reads within snapshotAge are single: a third one looks like a refresh, to which more belong.
const fewReads = 2

// batch answers reads of single objects. One that comes alone is a single GET; those that come while a request is under
// way, or after a few others, are answered together from one list of all, and so are later ones while that list is young.
// A write through this process makes the list too old for its object.
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
	began   time.Time            // when the present series of single reads began
	singles int                  // how many it has
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

// whole returns the list, which is young and from after the last write.
func (b *batch[T]) whole(ctx context.Context) (map[string]*T, error) {
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

// keep keeps a list for those who read next, unless there is a younger one.
func (b *batch[T]) keep(list map[string]*T, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if asked.After(b.listed) {
		b.list, b.listed = list, asked
	}
}

// single counts a read that comes alone, and reports whether it is to be a single one; b.mu is held.
func (b *batch[T]) single() bool {
	if time.Since(b.began) > snapshotAge {
		b.began, b.singles = time.Now(), 0
	}
	b.singles++
	return b.singles <= fewReads
}

// fetchAll serves those who wait from one list.
func (b *batch[T]) fetchAll(ctx context.Context) {
	defer b.release()
	b.serve(ctx)
}

// fetchOne reads one object, then serves those who came meanwhile from one list. However it ends, nobody is left waiting.
func (b *batch[T]) fetchOne(ctx context.Context, id string) (*T, error) {
	defer b.release()
	value, err := b.one(ctx, id)
	b.serve(ctx)
	return value, err
}

// release makes the batch idle. Whoever still waits, because the one who fetched was interrupted or panicked, asks again.
func (b *batch[T]) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = false
	for _, answers := range b.waiting {
		for _, answer := range answers {
			answer <- result[T]{again: true}
		}
	}
	b.waiting = map[string][]chan result[T]{}
}

// serve answers all who wait, and those who join them, from one list.
func (b *batch[T]) serve(ctx context.Context) {
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

// next takes out one object that is waited for, and who waits for it; nil if there is none.
func (b *batch[T]) next() (string, []chan result[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, answers := range b.waiting {
		delete(b.waiting, id)
		return id, answers
	}
	return "", nil
}

// answer tells those who wait for an object what the list, or a failure to list, says of it.
func (b *batch[T]) answer(ctx context.Context, id string, answers []chan result[T], err error) {
	r := result[T]{again: true} // until we get through
	defer func() {
		for _, answer := range answers {
			answer <- r
		}
	}()
	var value *T
	if err == nil {
		value, err = b.fromList(ctx, id)
	}
	r = result[T]{value: value, err: err, again: ctx.Err() != nil}
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

// wrote reports whether this process has changed any object.
func (b *batch[T]) wrote() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.written) > 0
}
