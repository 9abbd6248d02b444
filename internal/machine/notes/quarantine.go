package notes

import (
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// KeyQuarantine is the key of the note which says which allocation's deployment failed on the node, which member left it, or that the
// machine is not fit for work, so that the provider has retired it.
const KeyQuarantine = "terraform_metal_quarantine"

// Quarantine is the note on a node which the provider has retired because a deployment or its qualification failed on it, or because a
// member of a group moved to another node. Retired rather than in maintenance, because Ironic cleans no node in maintenance.
type Quarantine struct {
	Allocation string    `json:"allocation,omitempty"` // name of the allocation that had reserved the node
	Instance   string    `json:"instance,omitempty"`   // its UUID; "" after a move
	Since      time.Time `json:"since"`
	// when the node entered the state deploy failed, by its conductor's clock, in whole seconds
	Failed time.Time `json:"failed,omitzero"`
	Group  string    `json:"group,omitempty"` // whose member moved; "" after a failure
	Value  string    `json:"value,omitempty"` // of the member in replace_members
	Unfit  bool      `json:"unfit,omitempty"` // the machine has failed its qualification; Allocation, Instance and Failed are empty
}

// IsMove reports whether a member of a group has left the node, on which nothing failed.
func (q *Quarantine) IsMove() bool { return q.Group != "" }

// String says what happened, as a clause with "it" for the node.
func (q *Quarantine) String() string {
	if q.Unfit {
		return "it failed its qualification at " + q.Since.UTC().Format(time.RFC3339)
	}
	if q.IsMove() {
		return fmt.Sprintf("member %s of group %s left it at %s (replace_members: %q)", q.Allocation, q.Group,
			q.Since.UTC().Format(time.RFC3339), q.Value)
	}
	return fmt.Sprintf("the deployment for allocation %s failed on it at %s", q.Allocation, q.Since.UTC().Format(time.RFC3339))
}

// Reason is retired_reason of a node in quarantine. Users who may write notes may not write it, such as the members of a lessee: it proves
// the note.
func (q *Quarantine) Reason() string { return "quarantine: " + q.String() }

// QuarantineOf returns the quarantine of a node; nil if it is in none. A node that is not retired any more, or for another reason, is in
// none.
func QuarantineOf(n *ironic.Node) *Quarantine {
	q := Read[Quarantine](n.Extra, KeyQuarantine)
	if q == nil || !n.Retired || q.Allocation == "" && !q.Unfit || n.RetiredReason != q.Reason() {
		return nil
	}
	return q
}

// EndQuarantine adds to a patch the removal of the note of a quarantine, if the node has one.
func EndQuarantine(patch *ironic.Patch, n *ironic.Node) {
	if _, exists := n.Extra[KeyQuarantine]; exists {
		patch.Remove("/extra/" + KeyQuarantine)
	}
}

// UnfinishedQuarantine returns the quarantine of a node whose deployment failed for an allocation and which may not be undeployed yet; nil
// if there is none. The note does not count if another client has deployed the node since.
func UnfinishedQuarantine(n *ironic.Node, allocation string) *Quarantine {
	if q := QuarantineOf(n); q != nil && allocation != "" && q.Instance == allocation && q.Applies(n) {
		return q
	}
	return nil
}

// Applies reports whether a node still has the failure that it is in quarantine for, is being undeployed after it, or runs nothing.
// Anything else was deployed after the note was written.
func (q *Quarantine) Applies(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	if state == nodes.DeployFail {
		return q.Failed.Equal(n.ProvisionUpdatedAt.UTC().Truncate(time.Second))
	}
	return state == nodes.Error || !states.Occupied(state)
}

// InQuarantineFor reports whether a node is in quarantine because its deployment failed for an allocation (UUID).
func InQuarantineFor(n *ironic.Node, allocation string) bool {
	return UnfinishedQuarantine(n, allocation) != nil
}

func sayQuarantine(n *ironic.Node, _ time.Time) (w Words) {
	q := QuarantineOf(n)
	switch {
	case q == nil:
	case q.Unfit: // the qualification tells of itself
	case q.IsMove():
		w.Told = []Note{{At: q.Since, Text: fmt.Sprintf("quarantine: member %s of group %s left the machine", q.Allocation, q.Group)}}
	default:
		w.Told = []Note{{At: q.Since, Text: "quarantine: the deployment for allocation " + q.Allocation + " failed", Failed: true}}
	}
	if q != nil {
		w.Urgency = Unused
		w.Advice = "The node is in quarantine, so that no allocation reserves it. When it is repaired, run: metal unretire " +
			ironic.NodeArgument(n)
	}
	return w
}
