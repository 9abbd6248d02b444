package throttle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// acquire waits until it has created a record or taken it over, and returns the earliest time at which it did, and how long a dead run had
// it before. After an interruption it waits for the answer to its request, so that it leaves no record behind. waiting ends when the caller
// does not want the lock any more.
func (l *Locks) acquire(ctx, waiting context.Context, lock Lock, mine *Record) (taken time.Time, blocked time.Duration, err error) {
	answered, stop := rest.Outlast(waiting)
	defer stop()
	if taken = time.Now(); l.retake(answered, mine) {
		return taken, 0, nil
	}
	pause := rest.Backoff{First: 100 * time.Millisecond, Max: longestLook, Factor: 1.5}
	w := wait{begun: time.Now(), lock: lock}
	told, isHeld := time.Time{}, false
	for failed := 0; ; {
		var err error
		taken = time.Now()
		w.tried = cmp.Or(w.tried, taken)
		if !isHeld {
			created, cerr := l.records.Create(answered, *mine)
			if created {
				return taken, 0, nil
			}
			if err = cerr; err != nil && !l.records.MayPass(err) {
				return taken, 0, err
			}
		}
		w.where = l.records.Where(lock.Name) // the first creation may have changed it
		asked := time.Now()
		held, standing, rerr := l.see(answered, mine.Name)
		switch {
		case held == nil:
			isHeld = isHeld && rerr != nil
			if err == nil && rerr == nil && w.isUnseen() {
				return taken, 0, NotAllowed(errUnseen)
			}
		case held.Holder == mine.Holder: // an answer was lost
			mine.From, mine.Words = held.From, held.Words
			return w.tried, 0, nil
		case standing != Held:
			var mineNow bool
			if mineNow, rerr = l.takeOver(answered, held, mine); mineNow {
				return asked, held.blocked(standing), nil
			}
		default:
			if isHeld = true; w.isTooLong(held) {
				return taken, 0, w.locked().err()
			}
		}
		if err = cmp.Or(err, rerr); err == nil {
			failed = 0
		} else if failed++; failed == lockTries || !l.records.MayPass(err) {
			return taken, 0, err
		}
		if isHeld && time.Since(w.begun) > tellAfter && time.Since(told) > tellEvery {
			told = time.Now()
			l.tell(ctx, w.locked())
		}
		most := pause.Next()
		if rest.Sleep(waiting, most/4+rand.N(most)) != nil { //nolint:gosec // jitter
			return taken, 0, notFree(ctx, w.locked())
		}
	}
}

// see reads a record, with its standing as far as this process has seen it; nil if there is none, or if it could not be read.
func (l *Locks) see(ctx context.Context, name string) (*Record, Standing, error) {
	asked := time.Now()
	record, err := l.records.Read(ctx, name)
	if err != nil || record == nil {
		l.seen.forget(name)
		return nil, "", err
	}
	return record, l.seen.standing(record, asked), nil
}

// retake takes the record over that this process has left with words, without a read, unless another run has changed it.
func (l *Locks) retake(ctx context.Context, mine *Record) bool {
	left := l.kept(mine.Name)
	if left == nil {
		return false
	}
	taken, _ := l.takeOver(ctx, left, mine) // otherwise the caller reads the record
	return taken
}

// wait is what a caller has seen while it waits for a record.
type wait struct {
	lock   Lock
	where  string
	begun  time.Time
	holder Record
	since  time.Time // when the caller has first seen this holder
	tried  time.Time // when a request was sent first that may have taken the lock; zero: another holder was seen since
	unseen time.Time // since when the record exists and cannot be read; zero: it was read, or did not exist
}

// isTooLong reports whether the holder of a record has it for longer than any run of this provider does.
func (w *wait) isTooLong(held *Record) bool {
	w.tried = time.Time{}
	if w.unseen = (time.Time{}); w.since.IsZero() || w.holder.Holder != held.Holder {
		w.since = time.Now()
	}
	w.holder = *held
	return w.lock.Hold > 0 && time.Since(w.since) > w.lock.Hold
}

// isUnseen reports whether the record exists and cannot be read, for longer than records come and go.
func (w *wait) isUnseen() bool {
	if w.unseen.IsZero() {
		w.unseen = time.Now()
	}
	return time.Since(w.unseen) > unseenFor
}

func (w *wait) locked() *Locked {
	return &Locked{Lock: w.lock, After: time.Since(w.begun), Run: w.holder.Run, Where: w.where}
}

func takeoverOf(holder string) string { return "takeover:" + holder }

const takeoverDescription = "terraform-provider-metal: takeover from a run that died; may be deleted"

// takeOver takes a lock over from a dead holder, or one that has released it, with its words, and reports whether it has. Among the runs
// that try, only the one that creates the takeover record of the holder replaces the record of the lock. A takeover record that a dead run
// has left expires. The record of the lock always leads to it: by its holder before it is replaced, and by From afterwards. So no kill
// leaves a takeover record that no run finds.
func (l *Locks) takeOver(ctx context.Context, dead, mine *Record) (taken bool, err error) {
	if dead.Holder == "" { // another client has changed it
		return false, l.records.Delete(ctx, dead.Name)
	}
	if dead.From != "" {
		if err := l.records.Delete(ctx, takeoverOf(dead.From)); err != nil {
			return false, err
		}
	}
	mark := Record{Name: takeoverOf(dead.Holder), Description: takeoverDescription, Holder: mine.Holder}
	created, err := l.records.Create(ctx, mark)
	if !created {
		asked := time.Now()
		left, rerr := l.records.Read(ctx, mark.Name)
		switch {
		case rerr == nil && left != nil && left.Holder == mine.Holder: // the answer was lost
		case rerr == nil && left != nil && l.seen.standing(left, asked) == Left:
			return false, l.remove(ctx, left)
		default:
			return false, err
		}
	}
	next := *mine
	next.From, next.Words = dead.Holder, dead.Words
	taken, err = l.records.Replace(ctx, dead.Holder, next)
	if !taken {
		if now, rerr := l.records.Read(ctx, mine.Name); rerr == nil && now != nil {
			taken = now.Holder == mine.Holder            // the answer was lost
			if err == nil && now.Holder == dead.Holder { // another client has changed it, so that it cannot be replaced
				err = l.records.Delete(ctx, mine.Name)
			}
		}
	}
	if taken {
		*mine = next
		return true, nil // the release deletes the takeover record
	}
	if derr := l.records.Delete(ctx, mark.Name); err == nil {
		err = derr
	}
	return false, err
}

// KindLocked is the kind of an error which says that a lock was not free in time. Locked is in About.
const KindLocked fault.Kind = "locked"

// Locked is what is known of the wait for a lock.
type Locked struct {
	Lock  Lock
	After time.Duration // how long the caller has waited
	Run   string        // that holds it; "" if that is this run
	Where string        // the record; "" if this run holds it
}

func (e *Locked) err() error {
	return &fault.Error{
		Kind: KindLocked, About: e, Advice: e.advice(),
		Fact: fmt.Sprintf("waited %s to %s: %s was doing that all the time", e.After.Round(time.Second), e.Lock.For,
			holderName(e.Run, e.Where)),
	}
}

func (e *Locked) advice() string {
	if e.Lock.Hold == 0 {
		return "Apply again when that has ended, or raise timeouts."
	}
	return fmt.Sprintf("A run normally holds the lock for a few seconds. End the run that holds it, or delete its record in Ironic: %s. "+
		"To use no lock, set coordination = \"process\" in provisioning_limit. Nothing was started.", e.Where)
}

func holderName(run, where string) string {
	switch {
	case run != "":
		return "run " + run
	case where != "":
		return "another client"
	}
	return "another resource of this run"
}

// errUnseen says that another project has a record of the name of a lock.
var errUnseen = errors.New("the record exists already, and this user cannot see it")

func notFree(ctx context.Context, locked *Locked) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return locked.err()
}

// tell logs whom the caller waits for, and how long already.
func (l *Locks) tell(ctx context.Context, is *Locked) {
	l.records.Log(ctx, slog.LevelInfo, fmt.Sprintf("waits to %s: %s is doing that", is.Lock.For, holderName(is.Run, is.Where)),
		"lock", is.Lock.Name, "run", is.Run, "record", is.Where, "waited", is.After.Round(time.Second))
}
