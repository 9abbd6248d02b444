package marks

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// Erasure is the note on a node of the last automated cleaning that a run has watched. Ironic keeps no such record
// (reference/ironic.md#history-of-cleanings).
type Erasure struct {
	Run    string    `json:"run"`             // that has watched it
	Steps  []string  `json:"steps,omitempty"` // that polls have seen at work, in their order. A short one may have ended between two polls
	Began  time.Time `json:"began"`           // at the latest, by Ironic's clock
	Ended  time.Time `json:"ended,omitzero"`  // by Ironic's clock; zero: not yet
	Failed bool      `json:"failed,omitempty"`
}

// ErasureOf returns the note on a node; nil if it has none.
func ErasureOf(n *ironic.Node) *Erasure {
	text, err := json.Marshal(n.Extra[KeyErasure])
	var e Erasure
	if err != nil || json.Unmarshal(text, &e) != nil || e.Ended.IsZero() {
		return nil
	}
	return &e
}

// See returns what is known of a cleaning after a look at its node. e is what was known before; nil: nothing. A cleaning that begins anew is
// another one.
func (e *Erasure) See(n *ironic.Node, run string) *Erasure {
	state := ironic.State(n.ProvisionState)
	switch cleans := states.InCleaning(n) && states.InProgress(state); {
	case cleans && (e == nil || !e.Ended.IsZero()):
		e = &Erasure{Run: run, Began: n.ProvisionUpdatedAt.UTC()}
		fallthrough
	case cleans:
		if step := states.StepName(n.CleanStep); step != "" && !slices.Contains(e.Steps, step) {
			e.Steps = append(e.Steps, step)
		}
	case e != nil && e.Ended.IsZero():
		e.Ended, e.Failed = n.ProvisionUpdatedAt.UTC(), states.InCleaning(n)
	}
	return e
}
