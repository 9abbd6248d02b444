package throttle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

func TestAtMostTheLimitIsInWorkAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, hosts = 3, 20
		l := throttle.New(limit)
		var mu sync.Mutex
		var busy, peak, done int
		var wg sync.WaitGroup
		for range hosts {
			wg.Go(func() {
				release, err := l.Acquire(t.Context())
				if err != nil {
					t.Errorf("Acquire() = %v", err)
					return
				}
				defer release()
				mu.Lock()
				busy++
				peak = max(peak, busy)
				mu.Unlock()
				<-time.After(time.Minute)
				mu.Lock()
				busy--
				done++
				mu.Unlock()
			})
		}
		wg.Wait()
		if peak != limit || done != hosts {
			t.Errorf("peak %d, done %d; want %d, %d", peak, done, limit, hosts)
		}
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := throttle.New(1)
		hold, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				release, err := l.Acquire(t.Context())
				if err != nil {
					t.Errorf("Acquire() = %v", err)
					return
				}
				order = append(order, i)
				release()
			})
			synctest.Wait()
		}
		hold()
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("served in order %v", order)
			}
		}
	})
}

func TestACancelledWaiterLeavesAtOnceAndHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := throttle.New(1)
		hold, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := l.Acquire(ctx)
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire() = %v, want context.Canceled", err)
		}
		hold()
		hold() // twice is harmless
		release, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
}

func TestNoLimitNeverBlocks(t *testing.T) {
	t.Parallel()
	l := throttle.New(0)
	for range 1000 {
		if _, err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
