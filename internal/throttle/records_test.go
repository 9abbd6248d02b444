package throttle_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// The lease is a minute. A word counts for as long, and while a dead run has the lock, because nobody can renew it then.
func TestRecord_standing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		age, word time.Duration // of the record and of its word
		released  bool
		want      throttle.Standing
		counts    bool
	}{
		"held, young word":                   {30 * time.Second, 50 * time.Second, false, throttle.Held, true},
		"held, word of a dead run":           {30 * time.Second, 80 * time.Second, false, throttle.Held, false},
		"released, young word":               {20 * time.Second, 20 * time.Second, true, throttle.Released, true},
		"released, word of a dead run":       {20 * time.Second, 70 * time.Second, true, throttle.Released, false},
		"left by its holder, young word":     {90 * time.Second, 100 * time.Second, false, throttle.Left, true},
		"left by its holder, old word":       {90 * time.Second, 160 * time.Second, false, throttle.Left, false},
		"left by the runs that wait":         {90 * time.Second, 90 * time.Second, true, throttle.Left, false},
		"held for exactly as long as it may": {time.Minute, time.Second, false, throttle.Held, true},
	} {
		r := throttle.Record{
			Age: tt.age, Released: tt.released,
			Words: []throttle.Word{{Run: "a", Machines: 5, Renewed: now.Add(-tt.word)}},
		}
		if got, words := r.Standing(), r.WaitingAt(now); got != tt.want || (len(words) == 1) != tt.counts {
			t.Errorf("%s: %s with %v, want %s and that the word counts: %t", name, got, words, tt.want, tt.counts)
		}
	}
}
