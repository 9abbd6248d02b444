package machine

import (
	"cmp"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Why returns what Ironic's words about the last failure of a node mean; nil if the provider does not know. What the node itself tells of
// the cause is better than the advice of the table.
func Why(node *ironic.Node) *reason.Reason {
	known := reason.OfNode(node)
	if advice := AdviseCause(node); advice != "" && known != nil {
		known = new(*known)
		known.Next = advice
	}
	return known
}

// Failure is the last failure of a machine, for programs and for people.
type Failure struct {
	Reason  string       `json:"reason,omitempty"` // of the table; "" if no row has Ironic's words
	Blame   reason.Blame `json:"blame,omitempty"`
	Meaning string       `json:"meaning,omitempty"`
	Next    string       `json:"next,omitempty"`
	Words   string       `json:"words"` // Ironic's, with all their lines
}

// FailureOf returns the last failure of a node; nil if its last operation has not failed, or nothing tells why.
func FailureOf(node *ironic.Node) *Failure {
	words := strings.TrimSpace(cmp.Or(node.LastError, node.MaintenanceReason))
	if !states.OperationFailed(node) || words == "" {
		return nil
	}
	f := &Failure{Words: words}
	if why := Why(node); why != nil {
		f.Reason, f.Blame, f.Meaning, f.Next = why.ID, why.Blame, why.Meaning, why.Next
	}
	return f
}

// Line returns the failure in one line: the reason and what it means, or the first line of Ironic's words.
func (f *Failure) Line() string {
	if f.Reason == "" {
		return api.FirstLine(f.Words)
	}
	return f.Reason + ": " + f.Meaning
}
