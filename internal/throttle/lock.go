package throttle

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// Record is an entry that all runs on a site share. There is at most one record of a name.
type Record struct {
	Name        string
	Description string // for people who find the record
	Holder      string // the run that has created it
	Age         time.Duration
}

// Records are the records of a site.
type Records interface {
	// Create creates a record. It returns false if a record of that name exists, and a NotAllowedError if the user may not write
	// records. After any other error the record may have been created.
	Create(ctx context.Context, record Record) (created bool, err error)
	// Read returns a record, with its age by the site's clock; nil if there is none.
	Read(ctx context.Context, name string) (*Record, error)
	// Delete deletes a record. It succeeds if there is none.
	Delete(ctx context.Context, name string) error
	// MayPass reports whether a request that failed may succeed later.
	MayPass(err error) bool
}

// NotAllowedError says that the user may not write records, or that the site has none.
type NotAllowedError struct{ Err error }

// Error returns the site's message.
func (e *NotAllowedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotAllowedError) Unwrap() error { return e.Err }

const (
	lockName            = "admission" // the same in all versions of this provider
	lockDescription     = "terraform-provider-metal: admission lock, held for seconds"
	creationDescription = "terraform-provider-metal: a run takes over a creation, which takes seconds"
	takeoverDescription = "terraform-provider-metal: takeover from a run that died; may be deleted"
)

// lockTries is how many requests for the lock may fail in a row before the round fails.
const lockTries = 5

// lock takes the lock of the limit, if the limit has one, and returns the function that releases it. It takes over a record that
// is older than the lease, because the run that created it has died. If the user may not write records, there is no lock from then
// on, and the user gets one notice.
func (l *Limiter) lock(ctx context.Context) (locked bool, unlock func(), err error) {
	l.mu.Lock()
	without := l.unlocked || l.limit.Coordination != CoordinationIronic
	l.mu.Unlock()
	if without {
		return false, func() {}, nil
	}
	taken, err := acquire(ctx, l.site, Record{Name: lockName, Description: lockDescription, Holder: rand.Text()})
	var forbidden *NotAllowedError
	if errors.As(err, &forbidden) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unlocked = true
		l.stats.notLocked(forbidden)
		return false, func() {}, nil
	}
	if err != nil {
		return false, nil, err
	}
	return true, func() { release(context.WithoutCancel(ctx), l.site, lockName, taken) }, nil
}

// WithLock calls do while this run holds the record with a name, which at most one run holds. It takes over a record that a dead
// run has left. If the user may not write records, it calls do without one.
func WithLock(ctx context.Context, records Records, name string, do func() error) error {
	taken, err := acquire(ctx, records, Record{Name: name, Description: creationDescription, Holder: rand.Text()})
	var forbidden *NotAllowedError
	if errors.As(err, &forbidden) {
		return do()
	}
	if err != nil {
		return err
	}
	defer release(context.WithoutCancel(ctx), records, name, taken)
	return do()
}

// acquire waits until it has created a record, and returns the earliest time at which the record was created. After an
// interruption it waits for the answer to its request, so that it leaves no record behind.
func acquire(ctx context.Context, records Records, record Record) (taken time.Time, err error) {
	answered, stop := rest.Outlast(ctx)
	defer stop()
	for failed := 0; ; {
		taken = time.Now()
		created, err := records.Create(answered, record)
		if created {
			return taken, nil
		}
		if err != nil && !records.MayPass(err) {
			return taken, err
		}
		held, rerr := records.Read(answered, record.Name)
		switch {
		case held != nil && held.Holder == record.Holder: // the answer to the creation was lost
			return taken.Add(-held.Age), nil
		case held != nil && held.Age > lease:
			_, rerr = TakeOver(ctx, records, held.Holder, lease, func() error { return deleteIfHeldBy(ctx, records, held) })
		}
		if err == nil {
			err = rerr
		}
		if err == nil {
			failed = 0
		} else if failed++; failed == lockTries || !records.MayPass(err) {
			return taken, err
		}
		if err := rest.Sleep(ctx, 100*time.Millisecond+mathrand.N(300*time.Millisecond)); err != nil { //nolint:gosec // jitter
			return taken, err
		}
	}
}

// release deletes a lock record. It repeats failed requests, because a record that stays delays all runs by the lease. After
// half of the lease it lets the record expire, because the record may belong to another run by the time the request arrives.
func release(ctx context.Context, records Records, name string, taken time.Time) {
	for time.Since(taken) < lease/2 {
		if records.Delete(ctx, name) == nil || rest.Sleep(ctx, 500*time.Millisecond) != nil {
			return
		}
	}
}

// deleteIfHeldBy deletes a record if its holder is still the same.
func deleteIfHeldBy(ctx context.Context, records Records, held *Record) error {
	now, err := records.Read(ctx, held.Name)
	if err != nil || now == nil || now.Holder != held.Holder {
		return err
	}
	return records.Delete(ctx, held.Name)
}

// TakeOver calls free to remove what a dead run holds. Among the runs that try, only the one that creates the takeover record of
// the holder calls free; the others get false. free must check again that the holder is the same. A takeover record that a dead
// run has left expires.
func TakeOver(ctx context.Context, records Records, holder string, expires time.Duration, free func() error) (mine bool, err error) {
	mark := Record{Name: "takeover:" + holder, Description: takeoverDescription}
	created, err := records.Create(ctx, mark)
	if err != nil {
		return false, err
	}
	if !created {
		if left, err := records.Read(ctx, mark.Name); err == nil && left != nil && left.Age > expires {
			return false, records.Delete(ctx, mark.Name)
		}
		return false, nil
	}
	if err := free(); err != nil {
		return true, err
	}
	return true, records.Delete(ctx, mark.Name)
}
