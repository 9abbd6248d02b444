package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// KindUnwatched is the kind of an error which says that an operation has begun, or something runs, and that the provider cannot see any
// more what becomes of it: the rights of the user have ended, or Ironic or Keystone does not answer. Nothing is known to have failed. The
// error of the last read is in About and not a cause, because it says nothing about the object, not even if it is a 404.
const KindUnwatched Kind = "unwatched"

// NewUnwatched returns an error of KindUnwatched for an object, such as "node rack1-01 (885f…)". state is the one in which it was last
// seen, "" if it has none; err is the error of the last read.
func NewUnwatched(object, state string, err error) *Error {
	seen := ""
	if state != "" {
		seen = fmt.Sprintf(" It was last seen in state %q.", state)
	}
	e := &Error{
		Kind: KindUnwatched, About: err,
		Fact: fmt.Sprintf("%s can no longer be watched: %s.%s What was begun goes on without the provider", object, trimmed(err), seen),
	}
	// a change was refused: the object can still be seen
	if refusal := api.RefusalBy(err); refusal != nil && refusal.Rule != "" && !strings.HasPrefix(refusal.Rule, "baremetal:node:get") {
		e.Fact = fmt.Sprintf("Ironic refuses what is still to do on %s: %s.%s What was begun goes on without the provider", object,
			trimmed(err), seen)
	}
	e.Advice = "Then run the same command again: it continues from there, and replaces nothing."
	switch how := Advise(err); {
	case api.IsNotFound(err):
		e.Advice = "It was deleted, or the rights to see it have ended: Ironic answers both with 404. Find out which, and restore the " +
			"rights of the user. " + e.Advice
	case how != "":
		e.Advice = how + " " + e.Advice
	default:
		e.Advice = "Restore the connection or the rights of the user. " + e.Advice
	}
	return e
}

// trimmed returns the text of an error without a full stop at its end.
func trimmed(err error) string { return Ended(err.Error())[:len(Ended(err.Error()))-1] }

// Unwatched turns the error of a wait for an object into one of KindUnwatched: see NewUnwatched. It does not change the error if the wait
// was stopped, panicked, or timed out without a failed poll.
func Unwatched(ctx context.Context, object, state string, err error) error {
	switch {
	case err == nil, ctx.Err() != nil, IsUnwatched(err), routine.Is(err):
		return err
	case fault.Is(err, api.KindBlind):
		err = fault.AboutOf[error](err, api.KindBlind)
	case errors.Is(err, api.ErrNoPoll):
		return err
	}
	return NewUnwatched(object, state, err)
}

// IsAccess reports whether an error says nothing about the object of a request: the user lacks the rights, or Ironic or Keystone is
// unreachable, not trusted or too busy. A 404 for a node counts, because Ironic also sends it for a node that the user may not see.
func IsAccess(err error) bool {
	var status *api.StatusError
	switch stage := api.StageOf(err); {
	case stage == api.AtKeystone, stage == api.AtEndpoint, api.IsUntrusted(err), api.IsDenied(err):
		return true
	case errors.As(err, &status):
		return api.IsNotFound(err) && strings.HasPrefix(status.Message, "Node ")
	}
	return api.MayPass(err)
}
