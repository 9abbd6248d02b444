package api

import (
	"errors"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// deniedFor is how long a caller that waits for an object goes on asking while Ironic denies it the object: a proxy or Ironic's own access
// to Keystone may fail for a moment.
const deniedFor = time.Minute

// Patience decides after each read of an object that has failed whether a caller that waits for the object reads it again. The zero value
// is ready. It is for reads that have failed one after the other.
type Patience struct {
	began, denied time.Time // the first failure, and the first of the present series of denials
	err           error     // of the last read
}

// Outlasts records that a read has failed, and reports whether to read again: as long as the error may pass, and deniedFor if Ironic denies
// the object. If Keystone refuses the credentials, it reports false at once, because further tries may lock the user's account.
func (p *Patience) Outlasts(err error) bool {
	now := time.Now()
	if p.began.IsZero() {
		p.began = now
	}
	p.err = err
	if MayPass(err) || !IsDenied(err) || StageOf(err) == AtKeystone {
		p.denied = time.Time{}
		return MayPass(err)
	}
	if p.denied.IsZero() {
		p.denied = now
	}
	return now.Sub(p.denied) < deniedFor
}

// Blind returns the error of the last read if all reads have failed for a minute or longer; else nil.
func (p *Patience) Blind() error {
	if p.began.IsZero() || time.Since(p.began) < deniedFor {
		return nil
	}
	return p.err
}

// ErrNoPoll says that no poll has returned the object within the time that the caller gave.
var ErrNoPoll = errors.New("no poll in time")

// KindBlind is the kind of ErrNoPoll of a caller whose polls have all failed. The error of the last poll is in About and not a cause,
// because it says nothing about the object.
const KindBlind fault.Kind = "blind"

// Blind returns the error of KindBlind for the error of the last poll.
func Blind(err error) error {
	return &fault.Error{Kind: KindBlind, Fact: ErrNoPoll.Error() + ": " + err.Error(), About: err, Err: ErrNoPoll}
}
