package allocation

import "github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"

// private is what private state keeps of an allocation: see framework.KeepPrivate.
type private struct {
	// Node is what the last refresh has found out about the reserved node. Plans decide from it, so that a saved plan, which Terraform
	// plans again when it applies it, comes out the same.
	Node *allocate.ReservedNode `json:"node,omitzero"`
}

// see notes what plans must know of the reserved node. Whether something is deployed on it matters only if it is unusable; a deployment
// in the same apply would otherwise look like drift.
func (p *private) see(node allocate.ReservedNode) {
	node.Deployed = node.Deployed && node.Unusable != ""
	p.Node = &node
}
