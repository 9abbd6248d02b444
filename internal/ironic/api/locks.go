package api

import (
	"context"
	"sync"
)

// locks is a set of mutexes: one for each node or other name. Waiting for it ends with ctx.
type locks struct {
	mu   sync.Mutex
	held map[string]*heldLock
}

type heldLock struct {
	token chan struct{} // holds one token while the lock is free
	users int           // holder and waiters
}

// lock waits for the lock of a node or name and returns the function that releases it.
func (l *locks) lock(ctx context.Context, id string) (unlock func(), err error) {
	l.mu.Lock()
	h := l.held[id]
	if h == nil {
		if l.held == nil {
			l.held = map[string]*heldLock{}
		}
		h = &heldLock{token: make(chan struct{}, 1)}
		h.token <- struct{}{}
		l.held[id] = h
	}
	h.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(l.held, id)
		}
	}
	select {
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	case <-h.token:
		return func() { h.token <- struct{}{}; leave() }, nil
	}
}
