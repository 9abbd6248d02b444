package routine

import (
	"context"
	"sync"
)

// Shared is a value that several callers need and one of them reads. All that wait get its error, or its panic as an error, and the next
// caller reads again. The zero Shared is ready for use.
type Shared[T any] struct {
	mu   sync.Mutex
	read *reading[T]
}

type reading[T any] struct {
	ended   <-chan struct{}
	stop    context.CancelFunc
	waiting int
	value   T
	err     error
}

// Get returns the value, which the first caller reads. Reading goes on while any caller waits: it does not end with the call that began it.
func (s *Shared[T]) Get(ctx context.Context, read func(ctx context.Context) (T, error)) (value T, err error) {
	s.mu.Lock()
	r := s.read
	if r == nil {
		r = &reading[T]{}
		s.read = r
		var during context.Context
		during, r.stop = context.WithCancel(context.WithoutCancel(ctx))
		r.ended = Go(func() {
			defer s.end(r)
			defer Recover(&r.err)
			r.value, r.err = read(during)
		}, func(*PanicError) {})
	}
	r.waiting++
	s.mu.Unlock()
	select {
	case <-r.ended:
		return r.value, r.err
	case <-ctx.Done():
		s.leave(r)
		return value, ctx.Err()
	}
}

// end forgets what could not be read.
func (s *Shared[T]) end(r *reading[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stop()
	if r.err != nil && s.read == r {
		s.read = nil
	}
}

// leave ends the reading if nobody waits for it any more.
func (s *Shared[T]) leave(r *reading[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.waiting--; r.waiting > 0 || s.read != r {
		return
	}
	select {
	case <-r.ended: // others may still want the value
	default:
		r.stop()
		s.read = nil
	}
}
