package routine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// Many callers share one reading; it outlives the call that began it.
func TestShared_oneReadingForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shared routine.Shared[int]
		var reads atomic.Int32
		read := func(ctx context.Context) (int, error) {
			reads.Add(1)
			select {
			case <-time.After(time.Minute):
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		first, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := shared.Get(first, read); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first caller, which has left: %v", err)
			}
		})
		for range 5 {
			all.Go(func() {
				if got, err := shared.Get(t.Context(), read); got != 7 || err != nil {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		all.Wait()
		if reads.Load() != 1 {
			t.Errorf("it was read %d times", reads.Load())
		}
	})
}

// A reading that fails or panics fails for those that wait; the next caller reads again. One that nobody waits for ends.
func TestShared_failures(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() (int, error){
		"an error": func() (int, error) { return 0, errors.New("broken") },
		"a panic":  func() (int, error) { panic("broken") },
	} {
		synctest.Test(t, func(t *testing.T) {
			var shared routine.Shared[int]
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if _, err := shared.Get(t.Context(), func(context.Context) (int, error) { time.Sleep(time.Second); return fail() }); err == nil {
						t.Errorf("%s is no error", name)
					}
				})
			}
			all.Wait()
			if got, err := shared.Get(t.Context(), func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
				t.Errorf("after %s: %d, %v", name, got, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var shared routine.Shared[int]
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := false
		_, err := shared.Get(short, func(ctx context.Context) (int, error) { <-ctx.Done(); ended = true; return 0, ctx.Err() })
		if synctest.Wait(); err == nil || !ended {
			t.Errorf("nobody waits: %v, ended %t", err, ended)
		}
	})
}

// A panic in one of several calls is its error, and the others go on.
func TestEach_panics(t *testing.T) {
	t.Parallel()
	var at, most atomic.Int32
	errs := routine.Each(20, 3, func(i int) error {
		most.Store(max(most.Load(), at.Add(1)))
		defer at.Add(-1)
		if i%5 == 0 {
			panic(i)
		}
		return nil
	})
	for i, err := range errs {
		if routine.Is(err) != (i%5 == 0) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d calls at once", most.Load())
	}
}
