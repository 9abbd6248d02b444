package allocate

import (
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Request is what an allocation demands: what Ironic matches, and what the provider does. One request belongs to one creation.
type Request struct {
	ironic.AllocationSpec               // its candidates are those of the user
	Require               *Requirements // nil: nothing
	Wait                  time.Duration // how long to wait for a node that matches; zero: not at all

	until   time.Time // when the wait ends
	chosen  []string  // UUIDs of the candidates that meet the requirements
	claimed string    // UUID of the node that this creation counts on

	// Of a member of a group:
	group    string // the name of the group
	isBroken bool   // a killed run has created members, and was not finished with the group
	enough   int    // how many free nodes that fit are looked for; zero: enoughNodes
}

// spec returns what Ironic gets.
func (r *Request) spec() ironic.AllocationSpec {
	spec := r.AllocationSpec
	if r.Require != nil {
		spec.CandidateNodes = r.chosen
	}
	return spec
}

// Continue makes the request that of an allocation which exists already.
func (r *Request) Continue(a *ironic.Allocation) {
	r.UUID, r.Extra, r.chosen = a.UUID, a.Extra, a.CandidateNodes
}

// mayTakeOver reports whether the mark of an allocation is that of the same group, or of an allocation without one.
func (r *Request) mayTakeOver(mark *notes.Creation) bool { return mark != nil && mark.Group == r.group }

// what names in messages the resource that the request is for.
func (r *Request) what() string {
	if r.group != "" {
		return "group"
	}
	return "allocation"
}

func (r *Request) waits() bool { return time.Now().Before(r.until) }

func (r *Request) begin() {
	if r.until.IsZero() {
		r.until = time.Now().Add(r.Wait)
	}
}

// waited says in an error how long an allocation has waited.
func (r *Request) waited() string {
	if r.Wait == 0 {
		return ""
	}
	return fmt.Sprintf(" within %s (wait_for_capacity)", r.Wait)
}
