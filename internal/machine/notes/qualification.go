package notes

import (
	"maps"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyQualification is the key of the note which says by which steps the machine has proven that it is fit for work, or has failed to.
const KeyQualification = "terraform_metal_qualification"

// Recipe is what a machine does to prove that it is fit for work: a manual cleaning.
type Recipe struct {
	Runbook    string             `json:"runbook,omitempty"` // of Ironic, in place of steps
	Steps      []ironic.CleanStep `json:"steps,omitempty"`
	Parameters map[string]any     `json:"parameters,omitempty"` // keys of driver_info, which are there while the steps run
}

// Order returns the cleaning.
func (r Recipe) Order() ironic.Order { return ironic.Order{Runbook: r.Runbook, Steps: r.Steps} }

// IsEmpty reports whether there is nothing to do.
func (r Recipe) IsEmpty() bool { return r.Runbook == "" && len(r.Steps) == 0 }

// Qualification is what is noted of the last qualification of a machine. All times are by the clock of the site.
type Qualification struct {
	Recipe
	Begun     time.Time `json:"begun,omitzero"`  // zero: it has ended
	From      time.Time `json:"from,omitzero"`   // provision_updated_at when it began: the cleaning moves the node
	Passed    time.Time `json:"passed,omitzero"` // zero: it has not
	Failed    time.Time `json:"failed,omitzero"`
	Words     string    `json:"words,omitempty"`    // Ironic's, of the failure
	Inspected time.Time `json:"inspected,omitzero"` // when the inspection before it ended
	Serial    string    `json:"serial,omitempty"`   // of the machine; "": not known
}

// IsBurnInKey reports whether a key of driver_info is read by no step but those of a burn-in.
func IsBurnInKey(key string) bool { return strings.HasPrefix(key, "agent_burnin_") }

// QualificationOf returns the note on a node; nil if there is none. Parameters that it may not have are left out: users may write notes who
// may not write driver_info.
func QualificationOf(n *ironic.Node) *Qualification {
	q := Read[Qualification](n.Extra, KeyQualification)
	if q != nil {
		maps.DeleteFunc(q.Parameters, func(key string, _ any) bool { return !IsBurnInKey(key) })
	}
	return q
}

// Holds reports whether the machine of a node has passed within a time, and is the same since. Without the inventory of a node that was
// inspected since, known is false. q may be nil.
func (q *Qualification) Holds(n *ironic.Node, inventory *ironic.Inventory, within time.Duration, now time.Time) (holds, known bool) {
	if q == nil || !clock.IsYoung(q.Passed, now, within) {
		return false, true
	}
	switch at := InspectedAt(n); {
	case at.Equal(q.Inspected):
		return true, true
	case at.IsZero(): // an inspection has failed since
		return false, true
	case inventory == nil:
		return false, false
	}
	return q.Serial == inventory.System.Serial, true
}

// InspectedAt returns when the last inspection of a node has ended; zero if there was none, or if one is in progress or has failed since
// (reference/ironic.md#inspections).
func InspectedAt(n *ironic.Node) time.Time {
	if n.InspectionFinishedAt == nil {
		return time.Time{}
	}
	return n.InspectionFinishedAt.UTC().Truncate(time.Second)
}

func sayQualification(n *ironic.Node, _ time.Time) (w Words) {
	q := QualificationOf(n)
	switch {
	case q == nil:
	case !q.Begun.IsZero():
		w.Told = []Note{{At: q.Begun, Text: "qualification began", InProgress: true}}
	case !q.Passed.IsZero():
		w.Told = []Note{{At: q.Passed, Text: "the machine has passed its qualification"}}
	case !q.Failed.IsZero():
		w.Told = []Note{{At: q.Failed, Text: "the machine has failed its qualification: " + q.Words, Failed: true}}
		w.Urgency, w.Advice = Unused, "The machine has failed its qualification. When it is repaired, run: metal qualify "+
			ironic.NodeArgument(n)
	}
	return w
}
