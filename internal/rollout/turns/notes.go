package turns

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// service reports whether the turn is that of a host, whose note is another one than that of a deployment.
func (t *Turn) service() bool { return t.Change.Change == rollout.Service }

func (t *Turn) note(ctx context.Context, note notes.Turn) error {
	note.Group, note.Run, note.Instance, note.Canary = t.group.name, t.turns.site.Run.ID, t.m.Node().InstanceUUID, t.canary
	note.Replaces, note.Since = t.follows || t.Change.Change == rollout.Replacement,
		t.turns.site.Ironic.ServerNow().UTC().Truncate(time.Second)
	note.Restart = t.Change.Change == rollout.Restart && machine.Power(t.from) == "on"
	note.Service, note.Checked, note.Before = t.service(), t.Checked, t.from.ProvisionUpdatedAt
	note.Most = t.Settings.MaxUnavailable
	return t.write(ctx, note)
}

func (t *Turn) write(ctx context.Context, note notes.Turn) error {
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyOf(t.service()), note)
	return t.m.Patch(ctx, patch)
}

// Forget removes the note of a host or a deployment from a node that is no member of its group any more. It only logs a failure: then the
// note counts for nothing once the reservation is gone.
func Forget(ctx context.Context, site *machine.Site, id string, service bool) {
	m, err := site.Machine(ctx, id)
	switch {
	case err == nil:
		Clear(ctx, m, service)
	case !api.IsNotFound(err):
		warnLeft(ctx, site, id, err)
	}
}

// Clear is Forget for a machine that was just read. It sends nothing if its node has no such note.
func Clear(ctx context.Context, m *machine.Machine, service bool) {
	note := notes.TurnOf(m.Node(), service)
	if note == nil {
		return
	}
	if err := clearNote(ctx, m, service); err != nil && !api.IsNotFound(err) {
		warnLeft(ctx, m.Site(), m.Node().UUID, err)
	} else {
		forgetRun(ctx, m.Site(), note.Run)
	}
}

// ClearAll removes all notes of turns for an operator, who knows that the machine is available, or that it is not a member of the group.
func ClearAll(ctx context.Context, m *machine.Machine) error {
	var patch ironic.Patch
	all := notes.TurnsOf(m.Node())
	for _, note := range all {
		patch.Remove("/extra/" + notes.KeyOf(note.Service))
	}
	if err := m.Patch(ctx, patch); err != nil {
		return err
	}
	for _, note := range all {
		forgetRun(ctx, m.Site(), note.Run)
	}
	return nil
}

// ClearService removes the note of a service that has failed, or that a killed run has begun, from the node of a host that needs no service
// any more. It sends nothing if there is no such note, or if the machine is not back or in its pause.
func ClearService(ctx context.Context, m *machine.Machine) {
	note := notes.TurnOf(m.Node(), true)
	now := m.Site().Ironic.ServerNow()
	if note != nil && (note.Until.IsZero() || note.Rest(now) <= 0) && !states.Failed(m.State()) && !states.InProgress(m.State()) {
		Clear(ctx, m, true)
	}
}

func warnLeft(ctx context.Context, site *machine.Site, id string, err error) {
	site.Ironic.Logger().WarnContext(ctx, "could not remove the note of a rollout from a node", "uuid", id, "error", err)
}

func clearNote(ctx context.Context, m *machine.Machine, service bool) error {
	var patch ironic.Patch
	patch.Remove("/extra/" + notes.KeyOf(service))
	return m.Patch(ctx, patch)
}

// forgetRun removes the sign of life of a run that was killed: the resource whose note it has left goes on in this run. A run that lives
// keeps it.
func forgetRun(ctx context.Context, site *machine.Site, run string) {
	if run == site.Run.ID {
		return
	}
	standing, err := site.Locks().Look(ctx, SignalOf(run))
	if err == nil && standing == throttle.Left {
		err = site.Locks().Discard(ctx, SignalOf(run))
	}
	if err != nil {
		site.Ironic.Logger().DebugContext(ctx, "could not remove the sign of life of a killed run", "run", run, "error", err)
	}
}

// absences lists the members of a group that other runs work on, or have left away.
func (t *turns) absences(ctx context.Context, name string) (all []rollout.Absence, err error) {
	fields := []string{
		"uuid", "name", "provision_state", "provision_updated_at", "power_state", "target_power_state",
		"instance_uuid", "extra",
	}
	nodes, err := t.site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, fields)
	if err != nil {
		return nil, err
	}
	isOthers := func(note *notes.Turn) bool { return note.Group == name && note.Run != t.site.Run.ID }
	signs := map[string]Sign{}
	for i := range nodes {
		for _, note := range notes.TurnsOf(&nodes[i]) {
			if isOthers(note) {
				signs[note.Run] = Sign{}
			}
		}
	}
	if err := t.readSigns(ctx, signs); err != nil {
		return nil, err
	}
	for i := range nodes {
		for _, note := range notes.TurnsOf(&nodes[i]) {
			if !isOthers(note) {
				continue
			}
			all = append(all, AbsenceOf(&nodes[i], note, signs[note.Run], t.site.Ironic.ServerNow()))
		}
	}
	return all, nil
}

// mostRuns is how many other runs are asked one by one. More may be made up: one list says which of them have a record.
const mostRuns = 5

// readSigns reads the signs of life of runs.
func (t *turns) readSigns(ctx context.Context, signs map[string]Sign) error {
	recorded := map[string]bool{}
	if len(signs) > mostRuns {
		records, err := slots.Find(ctx, t.site.Ironic)
		if err != nil && !api.IsForbidden(err) {
			return err
		}
		for i := range records {
			recorded[records[i].Run] = true
		}
	}
	for run := range signs {
		alive := false
		if len(signs) <= mostRuns || recorded[run] {
			var err error
			if alive, err = t.site.Locks().IsHeld(ctx, SignalOf(run)); err != nil {
				return err
			}
		}
		signs[run] = t.sign(run, alive)
	}
	return nil
}

// sign returns what is known of a run that gives a sign of life now, or gives none.
func (t *turns) sign(run string, alive bool) Sign {
	t.mu.Lock()
	defer t.mu.Unlock()
	if alive {
		delete(t.silent, run)
		return Sign{Alive: true}
	}
	if t.silent[run].IsZero() {
		t.silent[run] = time.Now()
	}
	return Sign{Silent: time.Since(t.silent[run])}
}

// Sign is what is known of the sign of life of a run.
type Sign struct {
	Alive  bool
	Silent time.Duration // how long this run knows that the other one gives none
}

// Times of notes whose run gives no sign of life.
const (
	// AskFor is how long a member counts as away though the run gives no sign of life: it may be cut off from Ironic, and go on.
	AskFor = 20 * time.Minute
	// goneFor is how long a member counts that a dead run has undeployed and not deployed again. The next apply deploys it, perhaps on
	// another node.
	goneFor = time.Hour
)

// AbsenceOf judges a member by the note on its node. A member that is being changed is away until it is ready, or its writer or an operator
// removes the note. If the run gives no sign of life, it is back as soon as Ironic has done what the run has begun, and after AskFor if
// nothing shows that it does not run. With a ready check, nothing but its writer or an operator says that it is back. now is the time of
// Ironic's clock.
func AbsenceOf(n *ironic.Node, note *notes.Turn, sign Sign, now time.Time) rollout.Absence {
	ended := note.Failed || !note.Until.IsZero()
	state, same := ironic.State(n.ProvisionState), note.Instance != "" && note.Instance == n.InstanceUUID || note.Instance == "" && !ended
	a := rollout.Absence{ID: n.UUID, Name: cmp.Or(n.Name, n.UUID), Most: note.Most, Service: note.Service, Silent: !sign.Alive}
	busy := states.Has(state, states.Busy) || n.TargetPowerState != ""
	leftOff := !ended && note.Restart && machine.Power(n) == "off" // between the two halves
	done := !note.Before.IsZero() && !n.ProvisionUpdatedAt.Equal(note.Before) && states.KeepsDeployment(state) && !leftOff
	undeployed := n.InstanceUUID == "" || note.Instance != "" && note.Instance != n.InstanceUUID
	age, known := clock.Age(note.Since, now)
	gone := !ended && note.Replaces && undeployed && known && age < goneFor
	asked := !ended && same && !undeployed && sign.Silent < AskFor && (!done || note.Checked)
	a.Working = !ended && (sign.Alive || asked) || same && busy
	a.Failed = !a.Working && (gone || same && (note.Failed || states.Failed(state) || leftOff || !ended && note.Checked))
	if rest := note.Rest(now); rest > 0 {
		a.Until = time.Now().Add(rest)
	}
	return a
}

// signal is the sign of life of a run: a lock that it holds while any of its members is away. The notes on nodes count while it is held.
type signal struct {
	use   chan struct{} // has room for the one who uses the rest: that may take a while
	users int
	stop  chan struct{}
	ended <-chan struct{}
}

// SignalOf returns the name of the lock of a run.
func SignalOf(run string) string { return "rollout run " + run }

// begin gives the sign of life until the returned function is called.
func (s *signal) begin(ctx context.Context, site *machine.Site) (done func(), err error) {
	select {
	case s.use <- struct{}{}:
		defer func() { <-s.use }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.users++; s.users > 1 {
		return sync.OnceFunc(s.end), nil
	}
	s.stop = make(chan struct{})
	held := make(chan error, 1)
	stop := s.stop
	s.ended = routine.Go(func() { live(context.WithoutCancel(ctx), site, held, stop) }, func(err *routine.PanicError) {
		site.Ironic.Logger().ErrorContext(ctx, "the sign of life of this run has ended", "panic", err.Value, "stack", err.Stack)
		select {
		case held <- err:
		default:
		}
	})
	select {
	case err = <-held:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.users--
		close(s.stop)
		return nil, err
	}
	return sync.OnceFunc(s.end), nil
}

// loseFor is how long a run tries to get a lock again that it has lost: longer than others ask for it.
const loseFor = time.Hour

// live holds the lock until stop is closed. held gets one value: nil when it has the lock, or why it has not got it. If the lock is lost
// later, live takes it again.
func live(ctx context.Context, site *machine.Site, held chan<- error, stop <-chan struct{}) {
	lock := throttle.Lock{
		Name: SignalOf(site.Run.ID), Description: "terraform-provider-metal: a run changes machines of a rollout group",
		For: "change machines of a rollout group",
	}
	told, had := false, time.Now()
	for {
		working, end := context.WithCancel(ctx)
		routine.Go(func() {
			select {
			case <-stop:
				end()
			case <-working.Done():
			}
		}, func(*routine.PanicError) {}) // it calls nothing that can panic
		err := site.Locks().With(working, lock, func(ctx context.Context) error {
			if !told {
				told = true
				held <- nil
			}
			<-ctx.Done() // because of stop, or because the lock is lost
			had = time.Now()
			return nil
		})
		end()
		select {
		case <-stop:
			return
		default:
		}
		if !told {
			held <- err
		}
		if !told || time.Since(had) > loseFor {
			return
		}
		site.Ironic.Logger().Log(ctx, slog.LevelWarn, "other runs could not see for a while that this one changes machines of a "+
			"rollout group", "error", err)
		select {
		case <-stop:
			return
		case <-time.After(tellEach / 10):
		}
	}
}

// end takes back one begin.
func (s *signal) end() {
	s.use <- struct{}{}
	defer func() { <-s.use }()
	if s.users--; s.users == 0 {
		close(s.stop)
		<-s.ended
	}
}
