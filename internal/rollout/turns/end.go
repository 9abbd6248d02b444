package turns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

// End ends a turn with the error of what was done to the machine; nil: it has changed, and is ready.
func (t *Turn) End(ctx context.Context, err error) {
	if t == nil || t.ended {
		return
	}
	t.ended = true
	how := t.outcome(err)
	t.turns.mu.Lock()
	t.group.End(t.id, how, time.Now())
	if how == rollout.Failed {
		t.group.cause = causeOf(err)
	}
	t.group.wake()
	t.turns.mu.Unlock()
	if t.shared {
		t.endNote(ctx, how, err)
	}
	t.done()
}

// EndBack ends a turn whose change has failed although the machine runs as before. The run counts the failure; other runs do not count the
// machine as away.
func (t *Turn) EndBack(ctx context.Context, err error) {
	if t != nil {
		t.back = true
	}
	t.End(ctx, err)
}

// Hand ends a turn with which a machine was undeployed to be replaced: the new deployment takes it. node is that of the new
// deployment, as configured; "": not known yet.
func (t *Turn) Hand(ctx context.Context, node string) {
	if t == nil {
		return
	}
	t.turns.mu.Lock()
	before := t.turns.isSucceeded(t.Change, node)
	if !before {
		t.ended = true
		t.group.Hand(t.id, node, time.Now())
		t.group.wake()
	}
	t.turns.mu.Unlock()
	switch {
	case before:
		t.End(ctx, nil)
	case t.shared && notes.TurnOf(t.m.Node(), t.service()) == nil: // Ironic did not accept one before
		if err := t.note(ctx, notes.Turn{}); err != nil {
			warnLeft(ctx, t.turns.site, t.id, err)
		}
	}
}

// errAbandoned is the outcome of a turn that its caller has not ended.
var errAbandoned = fmt.Errorf("the turn was abandoned: %w", context.Canceled)

// Abandon ends a turn that was neither ended nor handed over, as after a panic. The provider does not know what has become of the machine.
func (t *Turn) Abandon(ctx context.Context) { t.End(ctx, errAbandoned) }

func (t *Turn) outcome(err error) rollout.Outcome {
	switch {
	case err == nil:
		return rollout.Ready
	case failure.IsInterrupted(err):
		return rollout.Untouched
	case !t.follows && !t.touched() && !failure.Is(err, failure.KindFailed) && !failure.Is(err, failure.KindTimeout) &&
		!failure.Is(err, failure.KindNotReady):
		return rollout.Untouched
	}
	return rollout.Failed
}

// hadFailed reports whether the note that the node had before counts the machine as away, because its last change has failed.
func (t *Turn) hadFailed() bool {
	return t.shared && t.was != nil && t.was.Group == t.group.name && t.was.Failed
}

// touched reports whether the machine has moved in this turn.
func (t *Turn) touched() bool {
	now := t.m.Node()
	return t.m.Started() || now.PowerState != t.from.PowerState || now.ProvisionState != t.from.ProvisionState ||
		!now.ProvisionUpdatedAt.Equal(t.from.ProvisionUpdatedAt)
}

// endNote updates the note on the node. It only logs a failure: the note of a run that has ended counts only while Ironic works on the
// machine.
func (t *Turn) endNote(ctx context.Context, how rollout.Outcome, err error) {
	ctx = context.WithoutCancel(ctx)
	until := time.Time{}
	if pause := t.group.Pause(); pause > 0 {
		until = t.turns.site.Ironic.ServerNow().Add(pause).UTC().Truncate(time.Second)
	}
	var failed error
	switch {
	case failure.IsInterrupted(err): // Ironic may work on it
	case how == rollout.Failed && !t.back:
		failed = t.note(ctx, notes.Turn{Failed: true})
	case how == rollout.Ready && !until.IsZero():
		failed = t.note(ctx, notes.Turn{Until: until})
	case how == rollout.Untouched:
		failed = t.restoreNote(ctx)
	default:
		failed = clearNote(ctx, t.m, t.service())
	}
	if failed != nil {
		t.turns.site.Ironic.Logger().WarnContext(ctx, "could not update the note of a rollout on a node",
			append(machine.NodeAttributes(t.m.Node()), "error", failed)...)
	}
}

// causeOf returns why a machine has failed, in one line: Ironic's words, if it has said any.
func causeOf(err error) string {
	if e := failure.As(err, failure.KindFailed); e != nil && e.Words != "" {
		return api.FirstLine(e.Words)
	}
	return api.FirstLine(err.Error())
}

// KindNotStarted is the kind of an error which says that a machine is not changed in this run.
const KindNotStarted failure.Kind = "not started"

// notStarted returns the error for a member. Terraform prints every error in full, in any order: each says the cause, and the first one of
// each reason what to do.
func (g *group) notStarted(t *Turn, why rollout.Refusal) error {
	label := ironic.NodeLabel(t.m.Node())
	fact, advice, short := "", "", "Apply again once that is mended."
	t.turns.mu.Lock()
	first, cause := !slices.Contains(g.told, why.Reason), g.cause
	g.told = append(g.told, why.Reason)
	t.turns.mu.Unlock()
	switch why.Reason {
	case rollout.TooManyFailures:
		fact = fmt.Sprintf("%d of %d machines that this run has changed in the same way have failed (%s): %s", len(why.Names), g.Tried(),
			few(why.Names), cause)
		advice = "So that a mistake does not reach all machines, this run starts no other. Find out why they have failed, and apply " +
			"again: machines that have failed before go last. rollout.max_failures sets how many may fail in a row."
	case rollout.CanaryFailed:
		fact = fmt.Sprintf("the canary %s has failed: %s", few(why.Names), cause)
		advice = "The other machines were to wait until it is ready. Find out why it has failed, and apply again. A machine that was not " +
			"ready is checked again at once; after any other failure, another machine goes first."
	case rollout.TooManyAway:
		short = "Repair what is away, and apply again."
		fact = fmt.Sprintf("rollout group %q lacks %s already, and no run works on that", t.Settings.Group, few(why.Names))
		advice = "At most max_unavailable members may be away at once. Repair what is away, with terraform apply or by hand. If a member " +
			"runs well and no apply can say so, or is no member any more, say so: metal ready NODE"
		if t.Change.Change == rollout.Service {
			short = "Repair what is away. If a metal_deployment of this configuration does that, Terraform begins it only after all its " +
				"hosts: set hardware_changes = { on_active = \"wait\" } for that apply."
			advice += ". If a metal_deployment of this configuration repairs it, Terraform begins that only after all its hosts: set " +
				"hardware_changes = { on_active = \"wait\" } for that apply."
		}
	case rollout.NoPlace:
		short = "Apply again to go on."
		fact = fmt.Sprintf("%s is undeployed, and its new deployment needs this place among Terraform's operations", few(why.Names))
		advice = "Apply again to go on. Terraform runs at most as many operations at once as -parallelism says (10 by default): with " +
			"more than the group has members, they all go in one apply, unless a metal_host on which they depend changes, too: then " +
			"apply that first, with -target. A metal_allocation_group moves its members only when all their deployments are undeployed: " +
			"move no more of them at once than max_unavailable."
	}
	again := ""
	if t.Change.Change == rollout.Replacement {
		again = "If -replace named its deployment, name it again: no later plan knows of that. "
	}
	e := &failure.Error{
		Kind: KindNotStarted, Node: t.m.Node(), Title: "Machine was not started",
		Fact: fmt.Sprintf("node %s was not started: %s", label, fact), Advice: "Nothing was sent to it. " + again + short,
	}
	if first {
		e.Advice = "Nothing was sent to the machine, which is as before. " + again + advice
	}
	return e
}
