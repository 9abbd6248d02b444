package oneview

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Purpose is what a temporary profile is for.
type Purpose string

// What needs a profile for a while.
const (
	Cleaning   Purpose = "Cleaning"
	Inspecting Purpose = "Inspecting"
)

// temporaryName is the name of a node's temporary profile, as Ironic's former OneView driver had it.
func temporaryName(purpose Purpose, nodeID string) string {
	return "Ironic " + string(purpose) + " [" + nodeID + "]"
}

// isTemporary reports whether a name is that of a temporary profile of a node.
func isTemporary(name, nodeID string) bool {
	return name == temporaryName(Cleaning, nodeID) || name == temporaryName(Inspecting, nodeID)
}

// Temporary gives a node's hardware a profile for a while, unless it has one of Ironic's, which is then used. release takes
// it away again, but only a temporary one: that of an earlier run that died is found again and removed, too. A node that has
// nothing to do with OneView, or is pre-allocated, gets nothing. release is never nil. A limit of zero is DefaultLimit.
func (p *Pool) Temporary(ctx context.Context, node *ironic.Node, purpose Purpose, limit time.Duration) (release func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	b, err := BindingOf(node)
	if err != nil || !b.Shared() {
		return nothing, err
	}
	r, err := p.newPreparation(ctx, PrepareOptions{NodeID: node.UUID, Name: temporaryName(purpose, node.UUID), Limit: limit})
	if err != nil {
		return nothing, err
	}
	r.temporary = purpose
	applied, err := r.run(ctx)
	if err != nil {
		return nothing, r.clearUp(ctx, err)
	}
	if !isTemporary(applied.Profile.Name, node.UUID) {
		return nothing, nil
	}
	return func(ctx context.Context) error { return p.releaseTemporary(ctx, node.UUID, applied.Profile.URI, limit) }, nil
}

// releaseTemporary is Release, unless the profile has become the node's own meanwhile.
func (p *Pool) releaseTemporary(ctx context.Context, nodeID, profileURI string, limit time.Duration) error {
	profile, err := p.OneView.Profile(ctx, profileURI)
	if err != nil && !IsNotFound(err) {
		return err
	}
	if err == nil && !isTemporary(profile.Name, nodeID) {
		return nil
	}
	return p.Release(ctx, ReleaseOptions{NodeID: nodeID, ProfileURI: profileURI, Limit: limit})
}
