package notes

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyTurn is the key of the note on a member of a rollout group that is away: see Turn.
const KeyTurn = "terraform_metal_turn"

// Turn is the note on a member of a rollout group that is away, or that runs for a while before the next member may be away. Other runs count it.
type Turn struct {
	Group    string    `json:"group"`
	Run      string    `json:"run"`                // the run whose turn it is or was
	Instance string    `json:"instance,omitempty"` // the reservation of the deployment; "" if there is none yet
	Canary   bool      `json:"canary,omitempty"`   // it goes first, and the others wait until it is ready
	Restart  bool      `json:"restart,omitempty"`  // it was on, and restarts: it is off only in between
	Service  bool      `json:"service,omitempty"`  // BIOS settings or firmware of its host change
	Replaces bool      `json:"replaces,omitempty"` // it is undeployed, and another deployment is to take its place
	Since    time.Time `json:"since,omitzero"`     // when the turn began, by Ironic's clock
	Failed   bool      `json:"failed,omitempty"`   // the change has failed, or the machine is not ready
	Until    time.Time `json:"until,omitzero"`     // the machine is ready, and the next one may be away from then on, by Ironic's clock
}

// TurnOf returns the note on a node; nil if it has none.
func TurnOf(n *ironic.Node) *Turn {
	if t := Read[Turn](n.Extra, KeyTurn); t != nil && t.Group != "" {
		return t
	}
	return nil
}

func sayTurn(n *ironic.Node, _ time.Time) (w Words) {
	t := TurnOf(n)
	if t == nil {
		return w
	}
	turn := Note{At: t.Since, Text: "turn of rollout group " + t.Group, By: "run " + t.Run, Failed: t.Failed}
	if t.Canary {
		turn.Text = "canary of rollout group " + t.Group
	}
	if t.Failed {
		turn.Text += ": the change failed, or the machine is not ready"
	}
	if !t.Since.IsZero() {
		w.Told = append(w.Told, turn)
	}
	if !t.Until.IsZero() {
		w.Told = append(w.Told, Note{At: t.Until, Text: "end of the pause of rollout group " + t.Group, By: "run " + t.Run})
	}
	return w
}
