package failure

import (
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Kind says what an error is about, for code that goes on differently after it. Each is declared beside the code that makes the error.
type Kind = fault.Kind

// Error is the error of an operation. What it says and advises is written where it is made; Explain only puts that together.
type Error struct {
	Kind   Kind           // "" if no code asks for it
	Node   *ironic.Node   // as last seen; nil if it is about none
	Goal   states.Goal    // of the walk that has ended; "" if none has
	Title  string         // of the message; "": that what was being done could not be done
	Fact   string         // what is the case
	Words  string         // Ironic's last_error; "" if it says nothing
	Why    *reason.Reason // what Words mean; nil if no row of the table has them
	Facts  []string       // what was looked up about the cause, each with what it proves
	Advice string         // what to do; "" if the fact says it
	Action string         // the advice if an action, which no later apply repeats, has requested the operation; "": the same
	Hint   string         // what else to check; "" if nothing
	Waits  string         // what the machine waited for, of KindQueued; "": a slot of the limit
	About  any            // facts for the code that handles errors of the kind
	Err    error          // the cause; nil if there is none
}

// Error returns the fact, and Ironic's words.
func (e *Error) Error() string {
	if e.Words == "" {
		return e.Fact
	}
	return e.Fact + ": " + strings.Join(strings.Fields(e.Words), " ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType returns the kind, for traces.
func (e *Error) ErrorType() string { return string(e.Kind) }

// Kinds of errors of a walk, and of a restart.
const (
	KindFailed  Kind = "failed"   // Ironic accepted an operation and the operation failed
	KindTimeout Kind = "time-out" // the goal was not reached in time; the operation may still be in progress
	KindStopped Kind = "stopped"  // the user has stopped the run (Ctrl-C); api.IsInterrupted reports it
	KindQueued  Kind = "queued"   // as above, while the machine waited for a slot: nothing was started
	KindDown    Kind = "down"     // a machine that was shut down for a restart was not switched on again
	KindInvalid Kind = "invalid"  // Ironic refused to deploy a node because something is missing on it

	KindNotReady Kind = "not-ready" // what runs on a machine did not answer its ready check in time
)

// As returns the first error of one of the given kinds in the tree of err; nil if there is none.
func As(err error, kinds ...Kind) *Error {
	return fault.First(err, func(e *Error) bool { return slices.Contains(kinds, e.Kind) })
}

// Is reports whether err is an error of a kind, or has one as a cause.
func Is(err error, kind Kind) bool { return As(err, kind) != nil }

// AboutOf returns About of the first error of a kind in the tree of err; the zero value if there is none.
func AboutOf[T any](err error, kind Kind) (about T) {
	if e := As(err, kind); e != nil {
		about, _ = e.About.(T)
	}
	return about
}

// IsUnwatched reports whether err is of KindUnwatched.
func IsUnwatched(err error) bool { return Is(err, KindUnwatched) }

// IsInterrupted reports whether an operation has ended for the provider though it has not failed: the user has stopped the run, or the
// operation cannot be watched any more. What exists is as complete as after a success, and the next apply continues.
func IsInterrupted(err error) bool { return api.IsInterrupted(err) || IsUnwatched(err) }
