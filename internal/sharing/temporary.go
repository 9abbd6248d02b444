package sharing

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Purpose says why a node needs a temporary profile.
type Purpose string

// The purposes.
const (
	Cleaning   Purpose = "Cleaning"
	Inspecting Purpose = "Inspecting"
)

// temporaryName returns the name of a node's temporary profile. Ironic's former OneView driver used the same.
func temporaryName(purpose Purpose, nodeID string) string {
	return "Ironic " + string(purpose) + " [" + nodeID + "]"
}

// isTemporary reports whether a name is that of a temporary profile of a node.
func isTemporary(name, nodeID string) bool {
	return name == temporaryName(Cleaning, nodeID) || name == temporaryName(Inspecting, nodeID)
}

// Temporary gives a node's hardware a temporary profile, unless it has one of Ironic's already. release removes the profile if it is
// temporary, including that of a killed run. A node that is pre-allocated or not in OneView gets no profile. release is never nil. A
// limit of zero means DefaultLimit.
func (p *Pool) Temporary(ctx context.Context, node *ironic.Node, purpose Purpose, limit time.Duration) (release func(context.Context) error, err error) {
	return p.temporary(ctx, node, purpose, limit, false)
}

// temporary is Temporary. With ends, the operation ends what runs on the machine, so that it may be switched off for the profile.
func (p *Pool) temporary(ctx context.Context, node *ironic.Node, purpose Purpose, limit time.Duration, ends bool) (release func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	b, err := BindingOf(node)
	if err != nil || !b.Shared() {
		return nothing, err
	}
	r, err := p.newPreparation(ctx, ProfileSpec{NodeID: node.UUID, Name: temporaryName(purpose, node.UUID), Limit: limit})
	if err != nil {
		return nothing, err
	}
	r.temporary, r.ends = purpose, ends
	applied, err := r.run(ctx)
	if err != nil {
		return nothing, r.clearUp(ctx, err)
	}
	if !isTemporary(applied.Profile.Name, node.UUID) {
		return nothing, nil
	}
	return func(ctx context.Context) error { return p.releaseTemporary(ctx, node.UUID, applied.Profile.URI, limit) }, nil
}

// releaseTemporary is Release, unless the profile has become permanent meanwhile.
func (p *Pool) releaseTemporary(ctx context.Context, nodeID, profileURI string, limit time.Duration) error {
	profile, err := p.OneView.Profile(ctx, profileURI)
	if err != nil && !oneview.IsNotFound(err) {
		return err
	}
	if err == nil && !isTemporary(profile.Name, nodeID) {
		return nil
	}
	return p.Release(ctx, ReleaseOptions{NodeID: nodeID, ProfileURI: profileURI, Limit: limit})
}
