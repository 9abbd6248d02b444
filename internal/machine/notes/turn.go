package notes

import (
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// The keys of the notes on a member of a rollout group that is away: see Turn. The host and the deployment of a machine may be of different
// runs, and each has its own note: only the resource that has written a note, or an operator, removes it.
const (
	KeyTurn     = "terraform_metal_turn"      // of a deployment
	KeyHostTurn = "terraform_metal_host_turn" // of a host
)

// Turn is the note on a member of a rollout group that is away, or that runs for a while before the next member may be away. Other runs
// count it.
type Turn struct {
	Group    string    `json:"group"`
	Run      string    `json:"run"`                // the run whose turn it is or was
	Instance string    `json:"instance,omitempty"` // the reservation of the deployment; "" if there is none yet
	Canary   bool      `json:"canary,omitempty"`   // it goes first, and the others wait until it is ready
	Restart  bool      `json:"restart,omitempty"`  // it was on, and restarts: it is off only in between
	Service  bool      `json:"service,omitempty"`  // BIOS settings or firmware of its host change
	Replaces bool      `json:"replaces,omitempty"` // it is undeployed, and another deployment is to take its place
	Since    time.Time `json:"since,omitzero"`     // when the turn began, by Ironic's clock
	Before   time.Time `json:"before,omitzero"`    // provision_updated_at of the node then: once it differs, something was done
	Checked  bool      `json:"checked,omitempty"`  // the machine is ready only after its ready check
	Most     int       `json:"max_unavailable,omitempty"`
	Failed   bool      `json:"failed,omitempty"` // the change has failed, or the machine is not ready
	Until    time.Time `json:"until,omitzero"`   // the machine is ready, and the next one may be away from then on, by Ironic's clock
}

// longestPause is the longest pause that counts.
const longestPause = 24 * time.Hour

// Rest returns how long the next member still waits after the turn. A pause without a beginning, or whose beginning is to come, counts for
// nothing: another client has made it up.
func (t *Turn) Rest(now time.Time) time.Duration {
	age, known := clock.Age(t.Since, now)
	if !known || t.Until.IsZero() {
		return 0
	}
	return max(0, min(t.Until.Sub(t.Since), longestPause)-age)
}

// KeyOf returns the key of the note of a host or a deployment.
func KeyOf(service bool) string {
	if service {
		return KeyHostTurn
	}
	return KeyTurn
}

// TurnOf returns the note of a host or a deployment on a node; nil if it has none.
func TurnOf(n *ironic.Node, service bool) *Turn {
	if t := Read[Turn](n.Extra, KeyOf(service)); t != nil && t.Group != "" && t.Service == service {
		return t
	}
	return nil
}

// TurnsOf returns all such notes on a node.
func TurnsOf(n *ironic.Node) (all []*Turn) {
	for _, service := range []bool{false, true} {
		if t := TurnOf(n, service); t != nil {
			all = append(all, t)
		}
	}
	return all
}

func sayTurn(service bool) func(*ironic.Node, time.Time) Words {
	return func(n *ironic.Node, now time.Time) Words {
		t := TurnOf(n, service)
		if t == nil {
			return Words{}
		}
		return t.words(n, now)
	}
}

func (t *Turn) words(n *ironic.Node, now time.Time) (w Words) {
	turn := Note{At: t.Since, Text: "turn of rollout group " + t.Group, By: "run " + t.Run, Failed: t.Failed}
	if t.Canary {
		turn.Text = "canary of rollout group " + t.Group
	}
	if t.Failed {
		turn.Text += ": the change failed, or the machine is not ready"
	}
	if t.Rest(now) > 0 {
		turn.Text += "; the pause after it ends at " + now.Add(t.Rest(now)).UTC().Format(time.RFC3339)
	}
	if !t.Since.IsZero() {
		w.Told = append(w.Told, turn)
	}
	if !t.Until.IsZero() && t.Rest(now) == 0 {
		w.Told = append(w.Told, Note{At: t.Until, Text: "end of the pause of rollout group " + t.Group, By: "run " + t.Run})
	}
	w.Left = &Left{
		Text: t.left(now), Run: t.Run, Failed: t.Failed, Passes: t.Rest(now) > 0, // the text has the time
		Next: "if the machine runs: metal ready " + ironic.NodeArgument(n),
	}
	if t.Failed && NotReadyOf(n) == nil && !states.IsInProgress(n) && !states.Failed(ironic.State(n.ProvisionState)) {
		w.Urgency, w.Advice = Broken, fmt.Sprintf("The last change of the machine has failed (metal history %s), and rollout group %q "+
			"waits for it. Check that the machine runs, mend the cause, and apply again.", ironic.NodeArgument(n), t.Group)
	}
	return w
}

// left says what became of a turn that counts no more, or that has not ended.
func (t *Turn) left(now time.Time) string {
	text := fmt.Sprintf("run %s began its turn in rollout group %s", t.Run, t.Group)
	if !t.Since.IsZero() {
		text += " " + clock.Text(t.Since, now)
	}
	switch {
	case t.Failed && t.Service:
		text += "; the service of its host has failed"
	case t.Failed:
		text += "; the change has failed"
	case t.Rest(now) > 0:
		text += "; the next member may be away in " + t.Rest(now).Round(time.Second).String()
	case !t.Until.IsZero():
		text += "; it has ended, and the note is still there"
	default:
		text += "; it has not ended"
	}
	return text
}
