// Package throttle decides who may start work now. It knows neither Ironic nor Terraform: callers name nothing,
// they ask for a slot, hold it while a machine is in work, and give it back.
package throttle

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Limiter hands out at most a fixed number of slots at once, first come, first served.
// A nil Limiter has no limit and never blocks.
type Limiter struct {
	slots *semaphore.Weighted
}

// New returns a Limiter with the given number of slots. Zero means no limit; a negative number is an error of the
// caller and panics, because configuration is validated long before.
func New(slots int) *Limiter {
	if slots < 0 {
		panic(fmt.Sprintf("throttle: %d slots", slots))
	}
	if slots == 0 {
		return nil
	}
	return &Limiter{slots: semaphore.NewWeighted(int64(slots))}
}

// Acquire waits for a slot and returns the function that gives it back, which may be called more than once.
// When ctx ends first it returns ctx's error and holds nothing.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	if l == nil {
		return func() {}, ctx.Err()
	}
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { l.slots.Release(1) }), nil
}
