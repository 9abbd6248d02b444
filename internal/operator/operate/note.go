package operate

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// How long the removal of a note may take, and how long after the command was stopped.
const (
	unnoteFor     = time.Minute
	unnoteStopped = 10 * time.Second
)

// noted does an operation. One of several requests is noted on the node before the first of them; the note goes when nothing is left half
// done, and says so if the operation has failed. A note of an earlier command with the same goal, which has not failed, serves as its own:
// Ironic may accept no other while it goes on with what that command has begun. warning is what a user must know about the note.
func (r *Runner) noted(ctx context.Context, op Operation, m *machine.Machine, timeout time.Duration) (warning string, err error) {
	r.forgetOld(ctx, m)
	earlier := notes.UnfinishedOperation(m.Node(), r.Site.Ironic.ServerNow())
	if op.Several != nil && op.Several(m.Node()) && !continues(m.Node(), op.Goal) {
		switch err := r.note(ctx, op, m); {
		case api.IsForbidden(err): // the right to the operation is another one
			warning = fmt.Sprintf("it was not noted on the node, because Ironic does not let this user change extra (%v): no command "+
				"would have named it if it had been killed", err)
		case err != nil:
			return "", err
		}
	}
	err = op.Do(ctx, m, timeout)
	// the record may be older than what Ironic goes on with
	if err != nil && m.Acted() && (ctx.Err() != nil || failure.Is(err, failure.KindDown)) {
		return warning, err
	}
	left, unfinished := notes.OperationOf(m.Node()), notes.UnfinishedOperation(m.Node(), r.Site.Ironic.ServerNow()) != nil
	done := err == nil || earlier == nil && !m.Acted()
	if left == nil || unfinished && (!done || left.Goal != op.Goal) {
		if left != nil && left.Run == r.Site.Run.ID {
			r.noteFailure(ctx, m, left)
		}
		return warning, err
	}
	// another note whose goal is reached no longer matters: the next command removes it
	if problem := unnote(ctx, m); problem != nil && (unfinished || doneFor(m.Node(), left.Command) != nil) {
		warning = fmt.Sprintf("Ironic did not let its note be removed (%v), so that it still counts. Remove the note: "+
			"baremetal node unset %s --extra %s", problem, m.Node().UUID, notes.KeyOperation)
	}
	return warning, err
}

// noteFailure adds to the note of an operation of this command that it has failed, so that no other command waits for its end. It adds
// nothing if the command was stopped or Ironic goes on with the operation. If Ironic refuses that, the note stays as it is.
func (r *Runner) noteFailure(ctx context.Context, m *machine.Machine, o *notes.Operation) {
	if ctx.Err() != nil || states.IsInProgress(m.Node()) {
		return
	}
	write := func() error { return m.Write(ctx, notes.FailOperation(o, r.Site.Ironic.ServerNow())) }
	if err := m.UnlockedWithin(ctx, unnoteFor, write); err != nil {
		r.Site.Ironic.Logger().DebugContext(ctx, "could not note that an operation has failed", "error", err)
	}
}

// unnote removes the note of an operation. It is no error if the note is another one meanwhile.
func unnote(ctx context.Context, m *machine.Machine) error {
	within := unnoteFor
	if ctx.Err() != nil {
		within = unnoteStopped
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		ctx = stopped
	}
	err := m.UnlockedWithin(ctx, within, func() error { return m.Write(ctx, notes.EndOperation(m.Node())) })
	if api.IsStatus(err, http.StatusBadRequest, "") {
		return nil
	}
	return err
}

// forgetOld removes a note that is too old to count. If Ironic refuses that, the operation ignores the note.
func (r *Runner) forgetOld(ctx context.Context, m *machine.Machine) {
	now := r.Site.Ironic.ServerNow()
	if o := notes.OperationOf(m.Node()); o == nil || !o.IsOld(now) {
		return
	}
	if err := m.Write(ctx, notes.EndOperation(m.Node())); err != nil {
		m.Changed(func(n *ironic.Node) { *n = *notes.WithoutOldOperation(n, now) })
	}
}

// note writes the note of an operation to the node of a machine, and checks that Ironic has it: two commands that begin at the same moment
// write over one another.
func (r *Runner) note(ctx context.Context, op Operation, m *machine.Machine) error {
	if op.Guarded {
		if err := m.CheckHardware(ctx); err != nil {
			return err
		}
	}
	own := &notes.Operation{
		Run: r.Site.Run.ID, Command: op.Command, By: cmp.Or(r.By, "an unknown user"),
		Since: r.Site.Ironic.ServerNow().UTC().Truncate(time.Second), Goal: op.Goal,
	}
	err := m.Unlocked(ctx, func() error { return m.Write(ctx, notes.BeginOperation(m.Node(), own)) })
	if err != nil && !api.IsStatus(err, http.StatusBadRequest, "") {
		return err
	}
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if now := notes.OperationOf(m.Node()); now == nil || now.Run != own.Run {
		if now == nil && err != nil {
			return err
		}
		return machine.RefusedFor(m.Node(), "another command of metal has just begun an operation on it"+nameOf(now)+
			". Run the command again when that has ended")
	}
	return nil
}

// nameOf names the operation of a note, as an insertion.
func nameOf(o *notes.Operation) string {
	if o == nil {
		return ""
	}
	return " (" + o.String() + ")"
}

// continues reports whether a machine has an operation with a goal that it has not reached, and that may be at work or was killed.
func continues(n *ironic.Node, goal notes.Goal) bool {
	return keeps(n, goal) && notes.OperationOf(n).Failed.IsZero()
}

func keeps(n *ironic.Node, goal notes.Goal) bool {
	left := notes.OperationOf(n)
	return left != nil && left.Goal == goal && !left.Reached(n)
}

// doneFor returns the operation of a command whose note is on a machine, if it has inspected or qualified the machine and has not failed:
// the machine only is to return to the pool, or has done so. It returns nil if there is none.
func doneFor(n *ironic.Node, command string) *notes.Operation {
	o := notes.OperationOf(n)
	if o == nil || o.Command != command || o.Goal != notes.GoalAvailable || !o.Failed.IsZero() {
		return nil
	}
	done := machine.InspectedAt(n)
	if command == commandQualify {
		done = time.Time{}
		if q := notes.QualificationOf(n); q != nil {
			done = q.Passed
		}
	}
	if !done.After(o.Since) {
		return nil
	}
	return o
}
