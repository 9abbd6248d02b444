package ironic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// listing makes a watch whose looks are all answered by f; a look at everything shows "a" to "d".
func listing(f func(look int) (string, error)) *watch[string] {
	looks := 0
	return newWatch(time.Minute,
		func(context.Context, string) (*string, error) {
			looks++
			value, err := f(looks)
			return &value, err
		},
		func(context.Context) (map[string]*string, error) {
			looks++
			value, err := f(looks)
			return map[string]*string{"a": &value, "b": &value, "c": &value, "d": &value}, err
		})
}

// inBubble is synctest.Test that lets a watch find out that nobody waits any more.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Hour) }()
		test(t)
	})
}

func TestPassingFailuresOfALookAreRepeated(t *testing.T) {
	t.Parallel()
	for _, passing := range []error{
		&StatusError{Status: http.StatusBadGateway}, &StatusError{Status: http.StatusServiceUnavailable}, syscall.ECONNRESET, syscall.ECONNREFUSED,
		fmt.Errorf("list nodes: %w", errShifted),
	} {
		inBubble(t, func(t *testing.T) {
			w := listing(func(look int) (string, error) {
				if look < 5 {
					return "", passing
				}
				return "here", nil
			})
			var wg sync.WaitGroup
			for _, id := range []string{"a", "b", "c", "d"} {
				wg.Go(func() {
					if value, err := w.next(t.Context(), id, time.Hour); err != nil || *value != "here" {
						t.Errorf("after %v: %v", passing, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestOtherFailuresOfALookEndTheWait(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := listing(func(int) (string, error) { return "", &StatusError{Status: http.StatusForbidden} })
		if _, err := w.next(t.Context(), "a", time.Hour); !isStatus(err, http.StatusForbidden, "") {
			t.Errorf("next = %v, want the 403", err)
		}
	})
}

func TestAPanicOfALookLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := listing(func(look int) (string, error) {
			if look == 1 {
				panic("broken answer")
			}
			return "here", nil
		})
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				if _, err := w.next(t.Context(), id, time.Hour); err == nil || errors.Is(err, errLimit) {
					t.Errorf("next = %v, want the panic", err)
				}
			})
		}
		wg.Wait()
		if value, err := w.next(t.Context(), "a", time.Hour); err != nil || *value != "here" {
			t.Errorf("the watch does not work after a panic: %v", err)
		}
	})
}

func TestALookAnswersOnlyThoseWhoWaitedWhenItBegan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		looks := 0
		w := newWatch(time.Minute, func(context.Context, string) (*int, error) {
			looks++
			look := looks
			<-time.After(10 * time.Second)
			return &look, nil
		}, nil)
		var wg sync.WaitGroup
		for i, after := range []time.Duration{0, 65 * time.Second} { // the second comes while the first is looked for
			wg.Go(func() {
				<-time.After(after)
				if look, err := w.next(t.Context(), "a", time.Hour); err != nil || *look != i+1 {
					t.Errorf("waiter %d got look %d, %v", i+1, *look, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAWaiterLeavesWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := listing(func(int) (string, error) { return "", syscall.ECONNRESET })
		start := time.Now()
		if _, err := w.next(t.Context(), "a", 90*time.Second); !errors.Is(err, errLimit) || time.Since(start) != 90*time.Second {
			t.Errorf("next = %v after %s", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := w.next(ctx, "a", time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("next = %v, want the interruption", err)
		}
	})
}
