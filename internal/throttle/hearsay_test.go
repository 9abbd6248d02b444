package throttle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// renewedYard is a yard in which the holder of a record renews it right before another run replaces it.
type renewedYard struct{ *yard }

func (y renewedYard) Replace(ctx context.Context, holder string, record throttle.Record) (bool, error) {
	mine := record
	mine.Holder = "its holder, taken over"
	if _, err := y.yard.Replace(ctx, holder, mine); err != nil {
		return false, err
	}
	return y.yard.Replace(ctx, holder, record)
}

// A sign of life that has lapsed is removed only as it was seen: a run that takes the record over at this moment keeps it.
func TestIsHeld_removesNoRecordThatWasTakenOver(t *testing.T) {
	t.Parallel()
	for name, takenOver := range map[string]bool{"dead": false, "taken over meanwhile": true} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(0)
			if created, err := y.Create(t.Context(), throttle.Record{Name: "run", Holder: "a run"}); !created || err != nil {
				t.Fatal(err)
			}
			var records throttle.Records = y
			if takenOver {
				records = renewedYard{y}
			}
			locks := throttle.NewLocks(records)
			for range 8 { // a run that it sees is not dead before the lease is over
				if _, err := locks.IsHeld(t.Context(), "run"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			}
			if left, err := y.Read(t.Context(), "run"); err != nil || (left != nil) != takenOver {
				t.Errorf("%s: %+v, %v", name, left, err)
			}
		})
	}
}

// Words of a time to come are of nobody: they take no slot from a run that waits.
func TestWaitingAt_countsNoWordsOfATimeToCome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for renewed, want := range map[time.Duration]int{-10 * time.Second: 1, -time.Hour: 0, time.Hour: 0, 70 * 365 * 24 * time.Hour: 0} {
		r := throttle.Record{Words: []throttle.Word{{Run: "r", Machines: 5, Since: now.Add(-time.Hour), Renewed: now.Add(renewed)}}}
		if got := len(r.WaitingAt(now)); got != want {
			t.Errorf("renewed at %s: %d words count, want %d", renewed, got, want)
		}
	}
}
