package throttle

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Freeze says that no run may begin anything on the machines of a site. Users write it, so that it is hearsay: it can only stop work.
type Freeze struct {
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // by the clock of the site; zero: until metal thaw
}

// String names who has frozen the site, since when, until when, and why, in one printable line.
func (f *Freeze) String() string {
	text := fmt.Sprintf("frozen by %s at %s", printed(f.By), f.Since.UTC().Format(time.RFC3339))
	if !f.Until.IsZero() {
		text += " until " + f.Until.UTC().Format(time.RFC3339)
	}
	return text + ": " + printed(f.Reason)
}

// printed is a text of others, with as much of it as is shown.
func printed(text string) string {
	const most = 200
	runes := []rune(rest.OneLine(text))
	if len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return string(runes)
}

// isOver reports whether the freeze has ended by itself.
func (f *Freeze) isOver(now time.Time) bool { return !f.Until.IsZero() && !now.Before(f.Until) }

// Times of a freeze.
const (
	FreezeNoticed = 20 * time.Second // after so long all runs know of a freeze, and of its end
	freezeLook    = 10 * time.Second // between two looks of an operation that waits
	freezeRefused = time.Hour        // until the record is read again where the user may not: the site logs each refusal
)

// The record of a freeze. All versions of this provider must use the same name. Lists of lock records do not have it, by its description.
const (
	FreezeName        = "freeze"
	freezeDescription = "frozen by metal freeze: no run begins anything on a machine until metal thaw"
)

// KindFrozen is the kind of an error which says that the site is frozen, and nothing was sent. The Freeze is in About.
const KindFrozen fault.Kind = "frozen"

func (f *Freeze) err() error {
	return &fault.Error{Kind: KindFrozen, About: f, Fact: "the site is " + f.String(), Advice: "metal thaw ends the freeze."}
}

// completes is the key of Completing.
type completes struct{}

// Completing returns ctx for requests that complete what has begun before: no freeze holds them back.
func Completing(ctx context.Context) context.Context {
	return context.WithValue(ctx, completes{}, true)
}

// Freezes knows whether a site is frozen. It is safe for concurrent use.
type Freezes struct {
	site Freezer
	mine chan struct{} // has a value while a caller reads the record, or changes what follows
	last *Freeze
	due  time.Time // when the record is to be read again
	told time.Time // when the log has last said that operations wait
	mute bool      // the log has said that the record cannot be read
}

// Freezer is a site that can be frozen.
type Freezer interface {
	Records
	Now() time.Time
}

// NewFreezes returns the freezes of a site.
func NewFreezes(site Freezer) *Freezes { return &Freezes{site: site, mine: make(chan struct{}, 1)} }

// Now returns the freeze of the site; nil if there is none. It reads the record at most once in FreezeNoticed, for all callers. A record
// that cannot be read changes nothing, and the log says so once.
func (f *Freezes) Now(ctx context.Context) *Freeze {
	f.mine <- struct{}{}
	defer func() { <-f.mine }()
	if now := time.Now(); !now.Before(f.due) && ctx.Err() == nil {
		f.due = now.Add(FreezeNoticed)
		switch record, err := f.site.Read(ctx, FreezeName); {
		case err == nil && record == nil:
			f.last = nil
		case err == nil:
			f.last = record.Freeze
		case ctx.Err() != nil:
			f.due = time.Time{}
		default:
			if !f.site.MayPass(err) {
				f.due = now.Add(freezeRefused)
			}
			if !f.mute {
				f.site.Log(ctx, slog.LevelWarn, "could not read whether the site is frozen, and goes on", "error", err)
			}
			f.mute = true
		}
	}
	if f.last == nil || f.last.isOver(f.site.Now()) {
		return nil
	}
	return f.last
}

// Check returns an error of KindFrozen if the site is frozen, unless ctx is one of Completing.
func (f *Freezes) Check(ctx context.Context) error {
	if ctx.Value(completes{}) != nil {
		return nil
	}
	if freeze := f.Now(ctx); freeze != nil {
		return freeze.err()
	}
	return nil
}

// Await waits until the site is not frozen, and reports whether it had to. It returns an error of KindFrozen at once if the freeze has no
// end, or if the wait would be longer than most.
func (f *Freezes) Await(ctx context.Context, most time.Duration) (waited bool, err error) {
	for begun := time.Now(); ; waited = true {
		freeze := f.Now(ctx)
		if freeze == nil || ctx.Value(completes{}) != nil {
			return waited, ctx.Err()
		}
		left := freeze.Until.Sub(f.site.Now())
		if f.tell(ctx, freeze); freeze.Until.IsZero() || left > most-time.Since(begun) {
			return waited, freeze.err()
		}
		if err := rest.Sleep(ctx, min(left, freezeLook)); err != nil {
			return waited, err
		}
	}
}

func (f *Freezes) tell(ctx context.Context, freeze *Freeze) {
	f.mine <- struct{}{}
	defer func() { <-f.mine }()
	if time.Since(f.told) >= tellEvery {
		f.told = time.Now()
		f.site.Log(ctx, slog.LevelWarn, "nothing new is begun: the site is "+freeze.String())
	}
}

// Freezes knows whether the site is frozen. The machines that wait for a slot then get an error of KindFrozen.
func (l *Limiter) Freezes() *Freezes { return l.freezes }

// holdBack ends the wait of the machines that a freeze holds back, and reports whether there are any.
func (l *Limiter) holdBack(ctx context.Context) bool {
	freeze := l.freezes.Now(ctx)
	if freeze == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := len(l.queue)
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		if !w.completes {
			w.outcome <- freeze.err()
		}
		return !w.completes
	})
	return len(l.queue) < all
}

// Set freezes the site. If it is frozen already, Set replaces that freeze if again is true, and otherwise returns it. It returns NotAllowed
// if the user may not write the record.
func (f *Freezes) Set(ctx context.Context, freeze Freeze, again bool) (stands *Freeze, err error) {
	record := Record{Name: FreezeName, Description: freezeDescription, Holder: rand.Text(), Freeze: &freeze}
	for range lockTries {
		created, err := f.site.Create(ctx, record)
		if created || err != nil && !f.site.MayPass(err) {
			return nil, err
		}
		held, rerr := f.site.Read(ctx, FreezeName)
		switch {
		case rerr != nil:
			return nil, rerr
		case held == nil && err != nil:
			return nil, err
		case held == nil:
			continue // it was deleted meanwhile
		case held.Holder == record.Holder: // the answer was lost
			return nil, nil
		case held.Holder == "": // another client has changed it
			if err := f.site.Delete(ctx, FreezeName); err != nil {
				return nil, err
			}
			continue
		case !again && held.Freeze != nil && !held.Freeze.isOver(f.site.Now()):
			return held.Freeze, nil
		}
		if replaced, err := f.site.Replace(ctx, held.Holder, record); replaced || err != nil {
			return nil, err
		}
	}
	return nil, errUnseen
}

// End ends the freeze of the site. It returns the freeze; nil if there is none.
func (f *Freezes) End(ctx context.Context) (*Freeze, error) {
	record, err := f.site.Read(ctx, FreezeName)
	if err != nil || record == nil {
		return nil, err
	}
	return record.Freeze, f.site.Delete(ctx, FreezeName)
}
