package marks

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

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

// IsOver reports whether the cleaning has ended and is worth a note. If no look has seen a step, Ironic may have skipped the cleaning because of
// automated_clean.
func (e *Erasure) IsOver() bool {
	return e != nil && !e.Ended.IsZero() && (e.Failed || len(e.Steps) > 0)
}

// See returns what is known of a cleaning after a look at its node. e is what was known before; nil: nothing. A cleaning that begins anew is
// another one. One that waits for an operator (clean hold) goes on.
func (e *Erasure) See(n *ironic.Node, run string) *Erasure {
	state := ironic.State(n.ProvisionState)
	manual := n.TargetProvisionState == string(nodes.Manageable)
	switch cleans := state == nodes.Cleaning || state == nodes.CleanWait || state == nodes.CleanHold; {
	case cleans && !manual && (e == nil || !e.Ended.IsZero()):
		e = &Erasure{Run: run, Began: n.ProvisionUpdatedAt.UTC()}
		fallthrough
	case cleans && !manual:
		if step := states.StepName(n.CleanStep); step != "" && !slices.Contains(e.Steps, step) {
			e.Steps = append(e.Steps, step)
		}
	case e != nil && e.Ended.IsZero():
		e.Ended, e.Failed = n.ProvisionUpdatedAt.UTC(), states.InCleaning(n)
	}
	return e
}
