package operate

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// unnoteFor is how long the removal of a note may take after the command was stopped.
const unnoteFor = 10 * time.Second

// noted does an operation. One of several requests is noted on the node before the first of them; the note goes when nothing is left half done.
// A note of an earlier command with the same goal serves
// as its own: Ironic may accept no other while it goes on with what that command has begun.
func (r *Runner) noted(ctx context.Context, op Operation, m *machine.Machine, timeout time.Duration) error {
	r.forgetOld(ctx, m)
	earlier := marks.UnfinishedOperation(m.Node(), r.Site.Ironic.ServerNow())
	if op.Several != nil && op.Several(m.Node()) && !keeps(m.Node(), op.Goal) {
		if err := r.note(ctx, op, m); err != nil {
			return err
		}
	}
	err := op.Do(ctx, m, timeout)
	left, unfinished := marks.OperationOf(m.Node()), marks.UnfinishedOperation(m.Node(), r.Site.Ironic.ServerNow()) != nil
	done := err == nil || earlier == nil && failure.Is(err, machine.KindRefused) // it has sent nothing
	if left == nil || unfinished && (!done || left.Goal != op.Goal) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unnoteFor)
	defer cancel()
	// The machine is as it should be, and a note whose goal is reached concerns nobody: the next command removes it.
	_ = m.Write(ctx, marks.EndOperation(m.Node()))
	return err
}

// forgetOld removes a note that is too old to count. If Ironic refuses that, the operation ignores the note.
func (r *Runner) forgetOld(ctx context.Context, m *machine.Machine) {
	now := r.Site.Ironic.ServerNow()
	if o := marks.OperationOf(m.Node()); o == nil || !o.IsOld(now) {
		return
	}
	if err := m.Write(ctx, marks.EndOperation(m.Node())); err != nil {
		m.Changed(func(n *ironic.Node) { *n = *marks.WithoutOldOperation(n, now) })
	}
}

// note writes the note of an operation to the node of a machine, and checks that Ironic has it: two commands that begin at the same moment write
// over one another.
func (r *Runner) note(ctx context.Context, op Operation, m *machine.Machine) error {
	own := &marks.Operation{Run: r.Site.Run.ID, Command: op.Command, By: cmp.Or(r.By, "an unknown user"), Since: r.Site.Ironic.ServerNow().UTC().Truncate(time.Second), Goal: op.Goal}
	err := m.Unlocked(ctx, func() error { return m.Write(ctx, marks.BeginOperation(m.Node(), own)) })
	if err != nil && !api.IsStatus(err, http.StatusBadRequest, "") {
		return err
	}
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if now := marks.OperationOf(m.Node()); now == nil || now.Run != own.Run {
		if now == nil && err != nil {
			return err
		}
		return machine.RefusedFor(m.Node(), "another command of metal has just begun an operation on it"+nameOf(now)+". Run the command again when that has ended")
	}
	return nil
}

// nameOf names the operation of a note, as an insertion.
func nameOf(o *marks.Operation) string {
	if o == nil {
		return ""
	}
	return " (" + o.String() + ")"
}

// keeps reports whether a machine has an operation with a goal that it has not reached.
func keeps(n *ironic.Node, goal marks.Goal) bool {
	left := marks.OperationOf(n)
	return left != nil && left.Goal == goal && !left.Reached(n)
}
