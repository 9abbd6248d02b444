package oneview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Release takes the profile away from a node's hardware, if Ironic uses it: it switches the server off, deletes the
// profile, and tells Ironic. profileURI is the profile that the caller knows of, and the only one that is removed then; if it
// is empty it is the one that Ironic uses. A limit of zero is DefaultLimit.
//
// Release of what is released already does nothing, and one that was killed can be begun again. The profile goes first, then
// driver_info: the other way round nobody would know whose it is. A profile that others have moved to other hardware, or
// have replaced, is theirs and stays. While something may run on the node it is an OccupiedError.
func (p *Pool) Release(ctx context.Context, nodeID, profileURI string, limit time.Duration) error {
	if limit == 0 {
		limit = DefaultLimit
	}
	deadline := time.Now().Add(limit)
	node, err := p.Ironic.Node(ctx, nodeID)
	if ironic.IsNotFound(err) && !uuidPattern.MatchString(nodeID) {
		if nodeID, err = p.formerly(ctx, nodeID, profileURI); err != nil || nodeID == "" {
			return err
		}
		node, err = p.Ironic.Node(ctx, nodeID)
	}
	if ironic.IsNotFound(err) {
		return p.releaseOrphan(ctx, nodeID, profileURI, deadline)
	}
	if err != nil {
		return err
	}
	b, err := BindingOf(node)
	if err != nil {
		return err
	}
	if b.HardwareURI == "" {
		return p.releaseOrphan(ctx, nodeID, profileURI, deadline)
	}
	h, err := p.holding(ctx, node, b)
	if IsNotFound(err) && h.Hardware == nil { // OneView does not have it any more
		known := cmp.Or(profileURI, b.AppliedURI)
		if err := p.releaseOrphan(ctx, nodeID, known, deadline); err != nil {
			return err
		}
		return p.retract(ctx, nodeID, known)
	}
	if err != nil {
		return err
	}
	target, err := p.releasable(ctx, node, b, h, profileURI)
	if err != nil {
		return err
	}
	if target != nil {
		if target.HardwareURI != "" && !ironic.Parked(ironic.State(node.ProvisionState)) {
			return &OccupiedError{Node: node, Reason: "server profile " + ProfileLabel(target) + " is to be removed"}
		}
		if err := p.remove(ctx, target.URI, h.Hardware.URI, deadline); err != nil && !errors.Is(err, errMoved) {
			return err
		}
		return p.retract(ctx, nodeID, target.URI, profileURI)
	}
	return p.retract(ctx, nodeID, cmp.Or(profileURI, b.AppliedURI))
}

// releasable is the profile that Release has to remove: on the node's hardware, or made for the node and on no hardware; nil if
// there is none. Only if the very profile that the caller wants removed is on the hardware, and neither Ironic nor the profile
// itself says that it is the node's, it is an InUseError.
func (p *Pool) releasable(ctx context.Context, node *ironic.Node, b Binding, h Holding, profileURI string) (*Profile, error) {
	if h.Profile != nil && (profileURI == "" || sameURI(h.Profile.URI, profileURI)) {
		if h.ours() {
			return h.Profile, nil
		}
		if profileURI != "" {
			return nil, h.inUse(node, b)
		}
	}
	if profileURI = cmp.Or(profileURI, b.AppliedURI); profileURI == "" {
		return nil, nil
	}
	profile, err := p.OneView.Profile(ctx, profileURI)
	if IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	here := profile.HardwareURI == "" || sameURI(profile.HardwareURI, h.Hardware.URI)
	if !here || !profile.madeFor(node.UUID) {
		return nil, nil
	}
	return profile, nil
}

// formerly is the UUID of the node that a profile was made for, where the node is known by a name that none has any more; empty
// if the profile is gone.
func (p *Pool) formerly(ctx context.Context, name, profileURI string) (string, error) {
	profile, err := p.OneView.Profile(ctx, profileURI)
	if IsNotFound(err) {
		return "", nil
	}
	if err == nil && profile.nodeID() == "" {
		err = fmt.Errorf("no node is called %s any more, and server profile %s does not tell which node it was made for: give node_id as a UUID", name, ProfileLabel(profile))
	}
	if err != nil {
		return "", err
	}
	return profile.nodeID(), nil
}

// releaseOrphan removes the profile of a node that is not in Ironic any more, or whose hardware is not known, if its mark says
// that it was made for that node.
func (p *Pool) releaseOrphan(ctx context.Context, nodeID, profileURI string, deadline time.Time) error {
	if profileURI == "" {
		return nil
	}
	profile, err := p.OneView.Profile(ctx, profileURI)
	if IsNotFound(err) || (err == nil && !profile.madeFor(nodeID)) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.remove(ctx, profile.URI, profile.HardwareURI, deadline)
}
