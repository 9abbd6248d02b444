package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Restarted is the note on a node of the last start of its machine for restart_triggers: a run with an older state does not repeat it. It
// stands in the marker of what is deployed, so that Ironic removes it with that.
type Restarted struct {
	Triggers string    `json:"triggers"`         // their TriggersDigest
	At       time.Time `json:"at"`               // when it was noted
	Before   string    `json:"before,omitempty"` // the last power change before it; "": the start has certainly happened
}

// TriggersDigest returns a short text that differs for different restart_triggers; "" for none, and while they are not known.
func TriggersDigest(triggers Text) string {
	if !triggers.Set {
		return ""
	}
	sum := sha256.Sum256([]byte(triggers.V))
	return hex.EncodeToString(sum[:16])
}

// NotedRestart returns the note on a node; the zero value if there is none.
func NotedRestart(n *ironic.Node) Restarted {
	if noted := InstanceMarkerOf(n).Restart; noted != nil {
		return *noted
	}
	return Restarted{}
}

// begun reports whether Ironic has changed the power since the note was written, and not failed to do so: it tells a failure by the last
// error.
func (r Restarted) begun(n *ironic.Node) bool {
	return r.Before != "" && !n.Hidden.DriverInternalInfo && n.LastError == "" && r.Before != machine.LastPowerChange(n)
}

// DoneRestart is NotedRestart for a restart that has happened, or in which the machine is off no more.
func DoneRestart(n *ironic.Node) Restarted {
	noted := NotedRestart(n)
	on := machine.Power(n) == string(PowerOn) && !strings.HasSuffix(n.TargetPowerState, "power off")
	if InstanceMarkerOf(n).taken(n) && (noted.Before == "" || noted.begun(n) && on) { // or its deployment has not begun
		return noted
	}
	return Restarted{}
}

// isNews reports whether triggers were executed, and not by the run that has recorded the state, which knew another note.
func (r Restarted) isNews(triggers string, known Restarted) bool {
	return triggers != "" && r.Triggers == triggers && !r.At.Equal(known.At)
}

// executed reports whether another run has executed the restart of the step since the state was recorded.
func (s Step) executed(n *ironic.Node) bool {
	return s.Do == DoRestart && DoneRestart(n).isNews(s.Restart.Triggers, s.Restart)
}

// Restart restarts the machine for its triggers, unless another run has done so since the state was recorded. It notes that on the node
// before the first request, so that another run does not repeat it.
func Restart(ctx context.Context, m *machine.Machine, step Step, how machine.OffMode, timeout time.Duration) error {
	if err := m.RebootOnce(ctx, how, timeout, func(ctx context.Context) (done bool, err error) {
		if err := m.Refresh(ctx); err != nil {
			return false, err
		}
		if step.executed(m.Node()) || m.Node().Hidden.DriverInternalInfo {
			return step.executed(m.Node()), nil
		}
		return false, noteRestart(ctx, m, step, machine.LastPowerChange(m.Node()))
	}); err != nil {
		return err
	}
	if m.Node().Hidden.DriverInternalInfo && !step.executed(m.Node()) {
		return noteRestart(ctx, m, step, "")
	}
	return nil
}

// noteRestart notes the restart of a step on the node. A user without the right to that restarts the machine all the same.
func noteRestart(ctx context.Context, m *machine.Machine, step Step, before string) error {
	noted := NotedRestart(m.Node())
	underway := noted.begun(m.Node()) || noted.Before == before && before != ""
	if step.Restart.Triggers == "" || underway && noted.isNews(step.Restart.Triggers, step.Restart) { // by this run or another one
		return nil
	}
	mark := InstanceMarkerOf(m.Node())
	mark.Restart = startFor(m, step.Restart.Triggers, before)
	var patch ironic.Patch
	patch.Set("/instance_info/"+notes.KeyMarker, mark)
	err := m.Patch(ctx, patch)
	if api.IsForbidden(err) {
		m.Site().Ironic.Logger().DebugContext(ctx, "could not note a restart on the node", "error", err)
		return nil
	}
	return err
}

// startFor returns the note of a start for triggers; nil if there are none.
func startFor(m *machine.Machine, triggers, before string) *Restarted {
	if triggers == "" {
		return nil
	}
	return &Restarted{Triggers: triggers, At: m.Site().Ironic.ServerNow().UTC(), Before: before}
}

// restarted reports whether another run has restarted the machine for the wished triggers, or deployed it with them, and did not record
// that in this state. It says so.
func (d *decision) restarted() bool {
	noted := d.seen.Sight.Restart
	if !noted.isNews(TriggersDigest(d.asked.Restart), d.seen.Restart) {
		return false
	}
	d.finished = true
	d.warn(nil, "Restart of an earlier run is recorded", fmt.Sprintf("Node %s was restarted for these restart_triggers at %s, by a run "+
		"whose state this one does not have. The apply does not touch the machine.", d.seen.Label, noted.At.Format(time.RFC3339)))
	return true
}
