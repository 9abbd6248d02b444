package turns

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

func (t *Turn) note(ctx context.Context, note notes.Turn) error {
	note.Group, note.Run, note.Instance, note.Canary = t.group.name, t.turns.site.Run.ID, t.m.Node().InstanceUUID, t.canary
	note.Replaces, note.Since = t.follows || t.Change.Change == rollout.Replacement,
		t.turns.site.Ironic.ServerNow().UTC().Truncate(time.Second)
	note.Restart = t.Change.Change == rollout.Restart && machine.Power(t.from) == "on"
	note.Service = t.Change.Change == rollout.Service
	return t.write(ctx, note)
}

func (t *Turn) write(ctx context.Context, note notes.Turn) error {
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyTurn, note)
	return t.m.Patch(ctx, patch)
}

// Forget removes the note of a turn from a node that is no member of its group any more. It only logs a failure: then the note counts for
// nothing once the reservation is gone.
func Forget(ctx context.Context, site *machine.Site, id string) { forget(ctx, site, id, Clear) }

// ForgetService is Forget for a host: it leaves what the note says of a deployment.
func ForgetService(ctx context.Context, site *machine.Site, id string) {
	forget(ctx, site, id, ClearService)
}

func forget(ctx context.Context, site *machine.Site, id string, remove func(context.Context, *machine.Machine)) {
	m, err := site.Machine(ctx, id)
	switch {
	case err == nil:
		remove(ctx, m)
	case !api.IsNotFound(err):
		warnLeft(ctx, site, id, err)
	}
}

// Clear is Forget for a machine that was just read. It sends nothing if its node has no note.
func Clear(ctx context.Context, m *machine.Machine) {
	if notes.TurnOf(m.Node()) != nil {
		clearNow(ctx, m)
	}
}

// ClearDeployment is Clear for a deployment that needs no turn. It leaves the note of a service: that is for the host to repeat.
func ClearDeployment(ctx context.Context, m *machine.Machine) {
	if note := notes.TurnOf(m.Node()); note != nil && !note.Service {
		clearNow(ctx, m)
	}
}

// ClearService removes the note of a service that has failed, or that a killed run has begun, from the node of a host that needs no service
// any more. It sends nothing if there is no such note, or if the machine is not back.
func ClearService(ctx context.Context, m *machine.Machine) {
	note := notes.TurnOf(m.Node())
	if note != nil && note.Service && note.Until.IsZero() && !states.Failed(m.State()) && !states.InProgress(m.State()) {
		clearNow(ctx, m)
	}
}

func clearNow(ctx context.Context, m *machine.Machine) {
	if err := clearNote(ctx, m); err != nil && !api.IsNotFound(err) {
		warnLeft(ctx, m.Site(), m.Node().UUID, err)
	}
}

func warnLeft(ctx context.Context, site *machine.Site, id string, err error) {
	site.Ironic.Logger().WarnContext(ctx, "could not remove the note of a rollout from a node", "uuid", id, "error", err)
}

func clearNote(ctx context.Context, m *machine.Machine) error {
	var patch ironic.Patch
	patch.Remove("/extra/" + notes.KeyTurn)
	return m.Patch(ctx, patch)
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
	alive := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		note := notes.TurnOf(n)
		if note == nil || note.Group != name || note.Run == t.site.Run.ID {
			continue
		}
		if _, known := alive[note.Run]; !known {
			if alive[note.Run], err = t.site.Locks().IsHeld(ctx, SignalOf(note.Run)); err != nil {
				return nil, err
			}
		}
		all = append(all, AbsenceOf(n, note, alive[note.Run], t.site.Ironic.ServerNow()))
	}
	return all, nil
}

// goneFor is how long a member counts that a dead run has undeployed and not deployed again. The next apply deploys it, perhaps on another
// node.
const goneFor = time.Hour

// AbsenceOf judges a member by the note on its node. alive: the run that has written it is at work. What a dead run has left is away only
// as long as Ironic works on it, or if it has failed, a restart has left it off, or it is undeployed. now is the time of Ironic's clock.
func AbsenceOf(n *ironic.Node, note *notes.Turn, alive bool, now time.Time) rollout.Absence {
	ended := note.Failed || !note.Until.IsZero()
	state, same := ironic.State(n.ProvisionState), note.Instance != "" && note.Instance == n.InstanceUUID || note.Instance == "" && !ended
	a := rollout.Absence{ID: n.UUID, Name: cmp.Or(n.Name, n.UUID)}
	busy := states.Has(state, states.Busy) || n.TargetPowerState != ""
	a.Working = alive && !ended || same && busy
	leftOff := !ended && note.Restart && machine.Power(n) == "off" // between the two halves
	undeployed := n.InstanceUUID == "" || note.Instance != "" && note.Instance != n.InstanceUUID
	gone := !ended && note.Replaces && undeployed && now.Sub(note.Since) < goneFor
	a.Failed = !a.Working && (gone || same && (note.Failed || states.Failed(state) || leftOff))
	if !note.Until.IsZero() {
		a.Until = time.Now().Add(note.Until.Sub(now))
	}
	return a
}

// signal is the sign of life of a run: a lock that it holds while any of its members is away. The notes on nodes count while it is held.
type signal struct {
	use   chan struct{} // has room for the one who uses the rest: that may take a while
	users int
	stop  chan struct{}
	ended chan struct{}
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
	s.stop, s.ended = make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go live(context.WithoutCancel(ctx), site, held, s.stop, s.ended)
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

// loseFor is how long a run tries to get a lock again that it has lost.
const loseFor = 10 * time.Minute

// live holds the lock until stop is closed, and then closes ended. held gets one value: nil when it has the lock, or why it has not got it.
// If the lock is lost later, live takes it again.
func live(ctx context.Context, site *machine.Site, held chan<- error, stop <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	lock := throttle.Lock{
		Name: SignalOf(site.Run.ID), Description: "terraform-provider-metal: a run changes machines of a rollout group",
		For: "change machines of a rollout group",
	}
	told, lost := false, time.Time{}
	for {
		working, end := context.WithCancel(ctx)
		go func() {
			select {
			case <-stop:
				end()
			case <-working.Done():
			}
		}()
		err := site.Locks().With(working, lock, func(ctx context.Context) error {
			if lost = (time.Time{}); !told {
				told = true
				held <- nil
			}
			<-ctx.Done() // because of stop, or because the lock is lost
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
			return
		}
		if lost.IsZero() {
			lost = time.Now()
		} else if time.Since(lost) > loseFor {
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
