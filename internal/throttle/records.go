package throttle

import (
	"context"
	"log/slog"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// Record is an entry that all runs on a site share. There is at most one record of a name.
type Record struct {
	Name        string
	Description string // for people who find the record
	Holder      string // who has it; random
	From        string // the dead holder from whom this one has taken it over; "" if none
	Renewals    int
	Words       []Word        // of the runs whose machines wait
	Freeze      *Freeze       // of the site, in the record of that; nil in those of locks
	Released    bool          // the holder does not have it any more; it stays for its words
	Lease       time.Duration // how long its holder has it without a renewal; zero: leastLease
	Run         string        // the run of the holder, for messages. The site sets it
	Age         time.Duration // since it was created, replaced or renewed, by the site's clocks, which may have jumped. The site sets it
}

// lease returns how long the holder of the record has it without a renewal. What others have written is believed within bounds.
func (r *Record) lease() time.Duration { return min(max(r.Lease, leastLease), longestLease) }

// Standing says what a record means to a run that wants the lock.
type Standing string

// The standings of a record.
const (
	Held     Standing = "held"     // a run has the lock
	Released Standing = "released" // no run has it; the record stays for its words
	Left     Standing = "left"     // the run that had it, or whose machines wait, has not renewed it for longer than the lease: it is dead
)

// Standing returns the standing of the record as far as one look tells, by the site's clocks: for people. Nobody may act by it, because
// clocks jump: see sightings. An age below zero tells nothing.
func (r *Record) Standing() Standing {
	switch {
	case r.Age > r.lease():
		return Left
	case r.Released:
		return Released
	}
	return Held
}

// WaitingAt returns the words of the runs whose machines wait at a time by the site's clock: those that a run finds that takes the lock
// then.
func (r *Record) WaitingAt(now time.Time) []Word {
	return alive(Found{Words: r.Words, Blocked: r.blocked(r.Standing())}, "", now, r.lease())
}

// blocked returns how long a dead run has had the lock, if the record has a standing.
func (r *Record) blocked(standing Standing) time.Duration {
	if r.Released || standing != Left {
		return 0
	}
	return max(r.Age, 0)
}

// Records are the records of a site.
type Records interface {
	// Create creates a record. It returns false if a record of that name exists, and NotAllowed if the user may not write
	// records. After any other error the record may have been created.
	Create(ctx context.Context, record Record) (created bool, err error)
	// Read returns a record, with its age by the site's clock; nil if there is none.
	Read(ctx context.Context, name string) (*Record, error)
	// Replace replaces the record of a holder. It returns false if there is none, or if it has another holder.
	Replace(ctx context.Context, holder string, record Record) (replaced bool, err error)
	// Delete deletes a record. It succeeds if there is none.
	Delete(ctx context.Context, name string) error
	// Where names a record as users find it on the site, for messages.
	Where(name string) string
	// AnswersTake returns how long the slowest of the site's recent answers took.
	AnswersTake() time.Duration
	// MayPass reports whether a request that failed may succeed later.
	MayPass(err error) bool
	// Log writes a line to the log. Attributes follow as keys and values.
	Log(ctx context.Context, level slog.Level, text string, args ...any)
}

const kindNotAllowed fault.Kind = "records not allowed"

// NotAllowed returns the error of a site which says that the user may not write records, or that the site has none.
func NotAllowed(err error) error {
	return &fault.Error{Kind: kindNotAllowed, Fact: err.Error(), Err: err}
}
