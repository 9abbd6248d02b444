package oneview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ReleaseOptions says which profile shall go.
type ReleaseOptions struct {
	NodeID string
	// ProfileURI is the profile that the caller knows of, and the only one that is removed then; empty: the one that Ironic uses.
	ProfileURI string
	// HardwareURI is the server hardware that the profile was applied to. It counts only where the node does not tell, because it
	// is gone or names none.
	HardwareURI string
	Limit       time.Duration // zero: DefaultLimit

	// Left is called with the profile and the reason if it exists and stays: it is on other hardware now, and belongs to whoever moved
	// it there, or nothing tells any more that it was made for the node. It may be nil.
	Left func(profile *Profile, why string)
}

// leave tells the caller of a profile that stays.
func (o ReleaseOptions) leave(profile *Profile) {
	if o.Left == nil {
		return
	}
	if profile.HardwareURI != "" && o.HardwareURI != "" && !sameURI(profile.HardwareURI, o.HardwareURI) {
		o.Left(profile, fmt.Sprintf("it is on %s now, not on %s, the node's. If nobody has moved it on purpose, delete it in OneView", profile.HardwareURI, o.HardwareURI))
		return
	}
	o.Left(profile, "its description does not tell any more that it was made for the node. If nobody needs it, delete it in OneView")
}

// Release takes the profile away from a node's hardware, if Ironic uses it: it switches the server off, deletes the
// profile, and tells Ironic.
//
// Release of what is released already does nothing, and one that was killed can be begun again. The profile goes first, then
// driver_info: the other way round nobody would know whose it is. A profile that others have moved to other hardware, or
// have replaced, is theirs and stays. While something may run on the node it is an OccupiedError.
func (p *Pool) Release(ctx context.Context, o ReleaseOptions) error {
	deadline := time.Now().Add(cmp.Or(o.Limit, DefaultLimit))
	node, err := p.Ironic.Node(ctx, o.NodeID)
	if ironic.IsNotFound(err) && !uuidPattern.MatchString(o.NodeID) {
		if o.NodeID, err = p.formerly(ctx, o.NodeID, o.ProfileURI); err != nil || o.NodeID == "" {
			return err
		}
		node, err = p.Ironic.Node(ctx, o.NodeID)
	}
	if ironic.IsNotFound(err) {
		return p.releaseOrphan(ctx, nil, o, deadline)
	}
	if err != nil {
		return err
	}
	b, err := BindingOf(node)
	if err != nil {
		return err
	}
	o.NodeID = node.UUID // which is what profiles are marked with; the caller may know the name
	o.HardwareURI = cmp.Or(b.HardwareURI, o.HardwareURI)
	if b.HardwareURI == "" {
		return p.releaseOrphan(ctx, node, o, deadline)
	}
	h, err := p.holding(ctx, node, b)
	if IsNotFound(err) && h.Hardware == nil { // OneView does not have it any more
		o.ProfileURI = cmp.Or(o.ProfileURI, b.AppliedURI)
		return p.releaseOrphan(ctx, node, o, deadline)
	}
	if err != nil {
		return err
	}
	target, err := p.releasable(ctx, node, b, h, o)
	if err != nil {
		return err
	}
	if target == nil {
		return p.retract(ctx, node.UUID, cmp.Or(o.ProfileURI, b.AppliedURI))
	}
	if err := maySpare(node, target); err != nil {
		return err
	}
	if err := p.removeUnlessMoved(ctx, o, removal{profileURI: target.URI, hardwareURI: h.Hardware.URI, deadline: deadline}); err != nil {
		return err
	}
	return p.retract(ctx, node.UUID, target.URI, o.ProfileURI)
}

// removeUnlessMoved is remove; a profile that others have moved is left to them.
func (p *Pool) removeUnlessMoved(ctx context.Context, o ReleaseOptions, r removal) error {
	err := p.remove(ctx, r)
	var moved *movedError
	if errors.As(err, &moved) {
		o.leave(moved.profile)
		return nil
	}
	return err
}

// maySpare refuses to take away the profile of a node on which something may run.
func maySpare(node *ironic.Node, profile *Profile) error {
	if profile.HardwareURI != "" && !ironic.Parked(ironic.State(node.ProvisionState)) {
		return &OccupiedError{Node: node, Reason: "server profile " + ProfileLabel(profile) + " is to be removed"}
	}
	return nil
}

// releasable is the profile that Release has to remove: on the node's hardware, or made for the node and on no hardware; nil if
// there is none. Only if the very profile that the caller wants removed is on the hardware, and neither Ironic nor the profile
// itself says that it is the node's, it is an InUseError.
func (p *Pool) releasable(ctx context.Context, node *ironic.Node, b Binding, h Holding, o ReleaseOptions) (*Profile, error) {
	profileURI := o.ProfileURI
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
		o.leave(profile)
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

// releaseOrphan removes the profile of a node that is not in Ironic any more, which is nil then, or of one whose hardware cannot
// be looked at. Its mark must say that it was made for that node, and it must still be where it was made.
func (p *Pool) releaseOrphan(ctx context.Context, node *ironic.Node, o ReleaseOptions, deadline time.Time) error {
	if o.ProfileURI == "" {
		return nil
	}
	profile, err := p.OneView.Profile(ctx, o.ProfileURI)
	switch {
	case IsNotFound(err):
		return p.retract(ctx, o.NodeID, o.ProfileURI)
	case err != nil:
		return err
	case !profile.madeFor(o.NodeID):
		o.leave(profile)
		return p.retract(ctx, o.NodeID, o.ProfileURI)
	}
	if node != nil {
		if err := maySpare(node, profile); err != nil {
			return err
		}
	}
	if profile.HardwareURI != "" && o.HardwareURI == "" {
		return fmt.Errorf("server profile %s was made for node %s, and nothing tells any more for which server hardware. It is on %s now: "+
			"if it still is the node's, and not somebody else's who has moved it there, delete it in OneView", ProfileLabel(profile), o.NodeID, profile.HardwareURI)
	}
	if err := p.removeUnlessMoved(ctx, o, removal{profileURI: profile.URI, hardwareURI: o.HardwareURI, deadline: deadline}); err != nil {
		return err
	}
	return p.retract(ctx, o.NodeID, profile.URI)
}
