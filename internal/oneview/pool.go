package oneview

import (
	"context"
	"errors"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Pool is server hardware that Ironic and other users of an appliance share.
type Pool struct {
	OneView *Client
	Ironic  *ironic.Client
}

// Holding is who holds the hardware of a node, and what is on it, at one moment.
type Holding struct {
	Ownership Ownership
	Hardware  *Hardware
	Profile   *Profile // what is applied to the hardware; nil: nothing

	// Stale: the node names an applied profile, but the hardware is free.
	Stale bool
	// Unfinished: by the rule the hardware is used by OneView, but its profile carries our mark for this very node and
	// hardware: a run was interrupted before it could tell Ironic. The next Prepare finishes it.
	Unfinished bool

	Compliance  Compliance
	Differences []string // where the profile differs from its template, as far as that is known
}

// Inspect tells who holds the hardware of a node.
func (p *Pool) Inspect(ctx context.Context, node *ironic.Node) (Holding, error) {
	return Holding{}, errors.ErrUnsupported
}

// Admit returns an InUseError if the hardware of a node is used by OneView, and nil if it may be deployed: it is free or
// ours, the node is pre-allocated, or it has nothing to do with OneView.
func (p *Pool) Admit(ctx context.Context, node *ironic.Node) error { return errors.ErrUnsupported }
