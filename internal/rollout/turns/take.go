package turns

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Take waits for the turn of a machine. It returns nil if the machine needs none, an error of KindNotStarted or machine.KindInVain if the
// machine is not to be started in this run, and one of failure.KindQueued if the user stops the run. Nothing was sent to the machine then.
func Take(ctx context.Context, m *machine.Machine, c Change) (*Turn, error) {
	t := of(m.Site())
	// Ironic accepts no note before that
	if c.Settings.MaxUnavailable > 0 && memberOf(m, c).Change != rollout.FirstDeployment && !abortsWait(m, c) {
		if err := m.AwaitEnd(ctx, c.Limit); ctx.Err() != nil {
			return nil, stopped(ctx, m)
		} else if err != nil {
			return nil, err
		}
	}
	me := memberOf(m, c)
	turn := &Turn{turns: t, m: m, id: me.ID, member: me, from: m.Node(), done: func() {}}
	turn.was = notes.TurnOf(m.Node(), c.Change == rollout.Service)
	t.mu.Lock()
	g, was := t.follows(me, c)
	if g == nil && !c.Settings.Concerns(c.Change) {
		t.mu.Unlock()
		return nil, nil //nolint:nilnil // no turn
	}
	c.Change = me.Change
	if turn.Change, turn.group = c, g; g == nil {
		turn.group = t.group(c)
		if err := turn.awaitOwn(ctx); err != nil {
			t.mu.Unlock()
			return nil, err
		}
		turn.group.Join(me)
	}
	turn.group.wake()
	turn.follows = g != nil
	turn.shared = turn.group.name != "" && (turn.follows || me.Change != rollout.FirstDeployment)
	t.mu.Unlock()
	if turn.follows {
		m.Turned()
		return turn, turn.follow(ctx, was)
	}
	waited, err := turn.wait(ctx)
	if waited {
		m.Turned()
	}
	if err == nil && waited && !turn.shared { // a note has read it
		if err = m.Refresh(ctx); err != nil {
			turn.End(ctx, err)
		}
	}
	if err != nil {
		return nil, err
	}
	turn.from = m.Node()
	return turn, nil
}

// abortsWait reports whether a machine is undeployed although an operation is in progress: Ironic waits for a machine that may never
// answer.
func abortsWait(m *machine.Machine, c Change) bool {
	return c.Change == rollout.Replacement && states.AwaitsAgent(m.State())
}

func memberOf(m *machine.Machine, c Change) rollout.Member {
	me := rollout.Member{
		ID: m.Node().UUID, Name: cmp.Or(m.Node().Name, m.Node().UUID), Change: c.Change, Failures: notes.Failures(m.Node()),
		Queued: time.Now(),
		Away:   c.Away || states.Failed(m.State()),
	}
	if was := notes.TurnOf(m.Node(), false); c.Change == rollout.FirstDeployment && was != nil && was.Group == c.Settings.Group &&
		(was.Replaces || was.Failed) {
		me.Change, me.Away = rollout.Replacement, true // an earlier run has undeployed the member
	}
	return me
}

// TakeToReplace is Take for a machine that is undeployed to be replaced. A machine on which nothing runs needs a turn only if a first
// deployment does.
func TakeToReplace(ctx context.Context, m *machine.Machine, c Change) (*Turn, error) {
	if c.Change = rollout.Replacement; !states.IsOccupied(m.Node()) || states.Failed(m.State()) {
		if c.Away = true; !c.Settings.Concerns(rollout.FirstDeployment) {
			return nil, nil //nolint:nilnil // no turn
		}
	}
	return Take(ctx, m, c)
}

// awaitOwn waits until another change of the same machine in this run has ended: a host and a deployment may share it. mu is held before
// and after.
func (t *Turn) awaitOwn(ctx context.Context) (err error) {
	for err == nil && t.group.Has(t.id) {
		for ctx.Err() == nil && t.group.Has(t.id) {
			changed := t.group.changed
			t.turns.mu.Unlock()
			select {
			case <-changed:
			case <-ctx.Done():
			}
			t.turns.mu.Lock()
		}
		if ctx.Err() != nil {
			return stopped(ctx, t.m)
		}
		t.turns.mu.Unlock()
		err = t.m.Refresh(ctx)
		t.turns.mu.Lock()
		t.was = notes.TurnOf(t.m.Node(), t.service())
	}
	return err
}

// stopped returns the error of a run that the user stops while the machine waits.
func stopped(ctx context.Context, m *machine.Machine) error {
	return &failure.Error{
		Kind: failure.KindQueued, Node: m.Node(), Fact: fmt.Sprintf("wait for the turn: %v", ctx.Err()),
		Waits: "its turn in the rollout", Err: ctx.Err(),
	}
}

// goal returns what the member waits for.
func (t *Turn) goal() states.Goal {
	if t.Change.Change == rollout.Service {
		return states.GoalServiced
	}
	return states.GoalDeployed
}

// wait waits until the member is started, and reports whether it had to.
func (t *Turn) wait(ctx context.Context) (waited bool, err error) {
	tell := time.NewTicker(tellEach)
	defer tell.Stop()
	for queued := time.Now(); ; {
		if err := t.m.InVain(t.goal()); err != nil {
			return waited, t.abandon(err)
		}
		t.turns.mu.Lock()
		d, changed := t.group.Decide(time.Now(), t.group.others), t.group.changed
		again := t.turns.again(t.group, d.Again)
		why, refused := d.Refuse[t.id]
		begins := slices.Contains(d.Start, t.id)
		switch {
		case refused:
			t.turns.leave(t.group, t.id, why.Reason == rollout.NoPlace)
		case begins && !t.shared:
			t.group.Start(t.id)
			t.group.wake()
		}
		t.turns.mu.Unlock()
		switch {
		case refused:
			return waited, t.group.notStarted(t, why)
		case begins && !t.shared:
			return waited, nil
		case begins:
			started, err := t.startShared(ctx)
			if err != nil && ctx.Err() == nil && (api.MayPass(err) || fault.Is(err, throttle.KindLost)) {
				t.joinAgain(ctx, err)
			} else if started || err != nil {
				return waited, err
			}
			again = t.turns.site.Ironic.PollInterval()
		}
		if !waited {
			waited = true
			t.tell(ctx, queued)
		}
		due := time.NewTimer(again)
		select {
		case <-changed:
		case <-due.C:
			t.turns.forget(t.group)
		case <-tell.C:
			t.tell(ctx, queued)
		case <-ctx.Done():
			due.Stop()
			t.turns.mu.Lock()
			t.turns.leave(t.group, t.id, false)
			t.turns.mu.Unlock()
			return waited, stopped(ctx, t.m)
		}
		due.Stop()
	}
}

// joinAgain lets a member wait on that could not be started because the site does not answer.
func (t *Turn) joinAgain(ctx context.Context, err error) {
	t.turns.site.Ironic.Logger().WarnContext(ctx, "a machine waits for its turn until Ironic answers again",
		append(machine.NodeAttributes(t.m.Node()), "error", err)...)
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.group.Join(t.member)
}

// longestHold is longer than any run has the lock of a group: it lists the nodes and writes one note.
const longestHold = 10 * time.Minute

// startShared starts a member of a named group if the members of other runs permit it, and leaves word of that on its node, under the lock
// of the group.
func (t *Turn) startShared(ctx context.Context) (started bool, err error) {
	name := t.group.name
	lock := throttle.Lock{
		Name: "rollout group " + name, Description: "terraform-provider-metal: lock of a rollout group, held for seconds",
		For: "start a machine of rollout group " + name, Hold: longestHold,
	}
	done, err := t.turns.signal.begin(ctx, t.turns.site)
	if err != nil {
		return false, t.abandon(err)
	}
	err = t.turns.site.Locks().With(ctx, lock, func(ctx context.Context) (err error) {
		started, err = t.start(ctx, name)
		return err
	})
	if err == nil && started {
		if t.done = done; t.was != nil {
			forgetRun(ctx, t.turns.site, t.was.Run)
		}
		return true, nil
	}
	defer done()
	if err != nil && started {
		_ = t.restoreNote(ctx)
	}
	if err != nil {
		return false, t.abandon(err)
	}
	return false, nil
}

// start is startShared while the run has the lock. A list that does not show the note which the run has just written is no answer
// (ironic/known.go), so the second one shows what others had written when the run got the lock.
func (t *Turn) start(ctx context.Context, name string) (started bool, err error) {
	hands := abortsWait(t.m, t.Change) // Hand writes the note
	others, err := t.turns.absences(ctx, name)
	if err != nil {
		return false, err
	}
	if begins := t.begins(others, hands); hands || !begins {
		return begins, nil
	}
	own := slices.DeleteFunc(slices.Clone(others), func(a rollout.Absence) bool { // which the note overwrites
		return a.ID != t.id || a.Service != t.service()
	})
	if err = t.note(ctx, notes.Turn{}); err == nil {
		others, err = t.turns.absences(ctx, name)
	}
	if started = err == nil && t.begins(append(others, own...), true); !started {
		if left := t.restoreNote(ctx); err == nil {
			err = left
		}
	}
	return started, err
}

// begins reports whether a member may start beside those that are away in other runs. It starts it if start is true.
func (t *Turn) begins(others []rollout.Absence, start bool) bool {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.group.others, t.group.listed = others, time.Now()
	if most := t.group.Most(others); most < t.Settings.MaxUnavailable {
		t.turns.site.Say("rollout "+t.Settings.Group, throttle.Notice{Summary: "Another run has a stricter rollout", Detail: fmt.Sprintf(
			"Rollout group %q: another run lets at most %d members be away at once, and this one %d. The stricter rule holds while both "+
				"change members. Set the same max_unavailable in all configurations of the group.", t.Settings.Group, most,
			t.Settings.MaxUnavailable)})
	}
	begins := slices.Contains(t.group.Decide(time.Now(), others).Start, t.id)
	t.canary = t.group.IsCanary(t.id)
	if begins && start {
		t.group.Start(t.id)
	}
	t.group.wake()
	return begins
}

// restoreNote takes the note of a member away that is not started after all, and leaves the one that was there before.
func (t *Turn) restoreNote(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if t.hadFailed() {
		return t.write(ctx, *t.was)
	}
	return clearNote(ctx, t.m, t.service())
}

// abandon removes a member that is not started because of an error, and returns the error.
func (t *Turn) abandon(err error) error {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.group.End(t.id, rollout.Untouched, time.Now())
	t.turns.leave(t.group, t.id, false)
	return err
}

// follow takes the place of a member that was undeployed, on the same machine or on another one.
func (t *Turn) follow(ctx context.Context, was string) error {
	if !t.shared {
		return nil
	}
	t.turns.mu.Lock()
	t.canary = t.group.IsCanary(t.id)
	t.turns.mu.Unlock()
	done, err := t.turns.signal.begin(ctx, t.turns.site)
	if err == nil {
		t.done = done
		err = t.note(ctx, notes.Turn{})
	}
	t.turns.signal.end() // what Hand has kept
	if err != nil {
		t.End(ctx, err)
		return err
	}
	if was != t.id {
		Forget(ctx, t.turns.site, was, false)
	}
	return nil
}

func (t *Turn) tell(ctx context.Context, queued time.Time) {
	t.turns.mu.Lock()
	working := t.group.Working()
	for _, o := range t.group.others {
		switch {
		case o.Working && o.Silent:
			working = append(working, fmt.Sprintf("%s (another run, which gives no sign of life. If it runs: metal ready %[1]s)", o.Name))
		case o.Working:
			working = append(working, o.Name+" (another run)")
		case o.Failed:
			working = append(working, o.Name+" (it has failed)")
		case time.Now().Before(o.Until):
			working = append(working, o.Name+" (its pause ends in "+time.Until(o.Until).Round(time.Second).String()+")")
		}
	}
	t.turns.mu.Unlock()
	text := "waits for its turn in the rollout"
	if len(working) > 0 {
		text += ": " + few(working) + " must be ready first"
	}
	logger := t.turns.site.Ironic.Logger()
	logger.Log(ctx, slog.LevelInfo, fmt.Sprintf("machine %s %s", ironic.NodeLabel(t.m.Node()), text),
		append(machine.NodeAttributes(t.m.Node()), "waited", time.Since(queued).Round(time.Second))...)
}
