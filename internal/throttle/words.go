package throttle

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// A run whose machines wait leaves words in the record of the lock, where each run that takes the lock finds them
// (reference/limit.md#words-of-other-runs). It writes them when it releases the lock, and renews them by a round.
func (l *Limiter) renewWords() time.Duration { return l.locks.lease() / 2 }

// leave returns the words for the next holder of the lock: those of other runs that are alive, and those of this run for the machines
// of a decision that still wait. refused says that the site's own limit has refused a machine: others need not wait for this run then.
func (l *Limiter) leave(found Found, considered []Ticket, refused bool) []Word {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.site.Now()
	words := alive(found, l.id, now, l.locks.lease())
	l.worded = time.Time{}
	if refused {
		return words
	}
	var waiting []Ticket
	for _, w := range l.queue {
		if slices.Contains(considered, w.Ticket) {
			waiting = append(waiting, w.Ticket)
		}
	}
	if len(waiting) > 0 {
		l.worded = time.Now()
	}
	return append(words, wordsOf(l.id, l.limit.Max, waiting, time.Until(now), now)...)
}

// others returns the words of other runs that are alive, with times by this process's clock.
func (l *Limiter) others(found Found) []Word {
	now := l.site.Now()
	ahead := time.Until(now)
	words := alive(found, l.id, now, l.locks.lease())
	for i := range words {
		words[i].Since = words[i].Since.Add(-ahead)
	}
	return words
}

// Freed says that a machine of this process does not take a slot any more, so that the waiting machines need not wait for the next
// list.
func (l *Limiter) Freed() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// forgetFreed forgets the slots that have become free before a list is requested.
func (l *Limiter) forgetFreed() {
	select {
	case <-l.freed:
	default:
	}
}

// next waits for the next list. It returns none and no error as soon as a machine of this process gives its slot back, or when the
// words of this run must be renewed: then it is time for a round.
func (l *Limiter) next(ctx context.Context) ([]Machine, error) {
	look, stop := context.WithCancel(ctx)
	woken, renewal := false, l.renewal()
	ended := routine.Go(func() {
		defer stop()
		select {
		case <-l.freed:
			woken = true
		case <-renewal:
			woken = true
		case <-look.Done():
		}
	}, func(*routine.PanicError) {}) // it calls nothing that can panic
	machines, err := l.site.NextMachines(look)
	stop()
	if <-ended; woken {
		return nil, ctx.Err()
	}
	return machines, err
}

// renewal returns a channel that gets a value when the words of this run must be renewed; nil if it has left none.
func (l *Limiter) renewal() <-chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.worded.IsZero() {
		return nil
	}
	return time.After(time.Until(l.worded.Add(l.renewWords())))
}

// tellYields logs when this run begins to leave free slots to other runs.
func (l *Limiter) tellYields(ctx context.Context, d Decision) {
	l.mu.Lock()
	began := d.Yields > 0 && !l.yields
	l.yields = d.Yields > 0
	l.mu.Unlock()
	if began {
		l.site.Log(ctx, slog.LevelInfo, "free slots of provisioning_limit are left to machines of other runs that have waited longer",
			"slots", d.Yields)
	}
}
