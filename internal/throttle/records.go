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
	Released    bool          // the holder does not have it any more; it stays for its words
	Run         string        // the run of the holder, for messages. The site sets it
	Age         time.Duration // since it was created, replaced or renewed. The site sets it
}

// Standing says what a record means to a run that wants the lock.
type Standing string

// The standings of a record.
const (
	Held     Standing = "held"     // a run has the lock
	Released Standing = "released" // no run has it; the record stays for its words
	Left     Standing = "left"     // the run that had it, or whose machines wait, has not renewed it for longer than the lease: it is dead
)

// Standing returns the standing of the record. Runs take a released and a left one over.
func (r *Record) Standing() Standing {
	switch {
	case r.Age > lease:
		return Left
	case r.Released:
		return Released
	}
	return Held
}

// WaitingAt returns the words of the runs whose machines wait at a time by the site's clock: those that a run finds that takes the lock
// then.
func (r *Record) WaitingAt(now time.Time) []Word {
	return alive(Found{Words: r.Words, Blocked: r.blocked()}, "", now)
}

// blocked returns how long a dead run has had the lock.
func (r *Record) blocked() time.Duration {
	if r.Released || r.Standing() != Left {
		return 0
	}
	return r.Age
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
