package allocation

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// private is what private state keeps of an allocation: see framework.KeepPrivate.
type private struct {
	// Node is what the last refresh has found out about the reserved node. Plans decide from it, so that a saved plan, which Terraform
	// plans again when it applies it, comes out the same.
	Node *allocate.ReservedNode `json:"node,omitzero"`
	// Reserved is when Ironic's record of the node had changed last, when the allocation was first seen with it. An older record is that of
	// a backup from before the allocation.
	Reserved time.Time `json:"reserved,omitzero"`
}

// isOlder reports whether the record of a node is from before its reservation.
func (p *private) isOlder(node *ironic.Node) bool {
	return !p.Reserved.IsZero() && node.ChangedAt().Before(p.Reserved.Add(-clock.Slack))
}

// see notes what plans must know of the reserved node. Whether something is deployed on it matters only if it is unusable; a deployment
// in the same apply would otherwise look like drift.
func (p *private) see(node allocate.ReservedNode) {
	node.Deployed = node.Deployed && node.Unusable != ""
	p.Node = &node
}
