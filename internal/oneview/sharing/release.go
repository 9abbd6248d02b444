package sharing

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// ReleaseOptions says which profile Release removes.
type ReleaseOptions struct {
	NodeID string
	// ProfileURI is the only profile that Release removes; empty: the one that Ironic uses.
	ProfileURI string
	// HardwareURI is the server hardware to which the profile was applied. Release uses it only if the node is gone or has no
	// server_hardware_uri.
	HardwareURI string
	Limit       time.Duration // zero: DefaultLimit

	// Left is called with a profile that Release does not remove, and the reason: another user has moved it to other hardware, or
	// there is no proof any more that it was made for the node. It may be nil.
	Left func(profile *oneview.Profile, why string)
}

// leave reports a profile that Release does not remove to the caller.
func (o ReleaseOptions) leave(profile *oneview.Profile) {
	if o.Left == nil {
		return
	}
	if profile.HardwareURI != "" && o.HardwareURI != "" && !oneview.SameURI(profile.HardwareURI, o.HardwareURI) {
		o.Left(profile, fmt.Sprintf("it is on %s now, not on the node's hardware %s. If it was not moved on purpose, delete it in OneView",
			profile.HardwareURI, o.HardwareURI))
		return
	}
	o.Left(profile, "its description does not say any more that it was made for the node. If it is not needed, delete it in OneView")
}

// Release removes the profile of a node's hardware, if Ironic uses it: it switches the server off, deletes the profile, and removes
// it from driver_info.
//
// Release does nothing if the profile is gone already, and can be repeated after it was killed. It deletes the profile before it
// changes driver_info, because driver_info proves that the profile is Ironic's. It does not remove a profile that another user has
// moved to other hardware or replaced. While the node may run a deployment it returns an error of KindOccupied.
func (p *Pool) Release(ctx context.Context, o ReleaseOptions) error {
	deadline := time.Now().Add(cmp.Or(o.Limit, DefaultLimit))
	node, err := p.Site.Ironic.Node(ctx, o.NodeID)
	if api.IsNotFound(err) && !uuidPattern.MatchString(o.NodeID) {
		if o.NodeID, err = p.formerly(ctx, o.NodeID, o.ProfileURI); err != nil || o.NodeID == "" {
			return err
		}
		node, err = p.Site.Ironic.Node(ctx, o.NodeID)
	}
	if api.IsNotFound(err) {
		return p.releaseOrphan(ctx, nil, o, deadline)
	}
	if err != nil {
		return err
	}
	b, err := BindingOf(node)
	if err != nil {
		return err
	}
	o.NodeID = node.UUID // marks contain the UUID, and the caller may have passed the name
	o.HardwareURI = cmp.Or(b.HardwareURI, o.HardwareURI)
	if b.HardwareURI == "" {
		return p.releaseOrphan(ctx, node, o, deadline)
	}
	h, err := p.holding(ctx, node, b)
	if oneview.IsNotFound(err) && h.Hardware == nil { // OneView does not have the hardware any more
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

// removeUnlessMoved is remove, except for a profile that another user has moved.
func (p *Pool) removeUnlessMoved(ctx context.Context, o ReleaseOptions, r removal) error {
	err := p.remove(ctx, r)
	if moved := failure.AboutOf[*oneview.Profile](err, kindMoved); moved != nil {
		o.leave(moved)
		return nil
	}
	return err
}

// maySpare refuses to remove the profile of a node that may run a deployment.
func maySpare(node *ironic.Node, profile *oneview.Profile) error {
	if profile.HardwareURI != "" && !states.Parked(ironic.State(node.ProvisionState)) {
		return occupied(node, "server profile "+oneview.ProfileLabel(profile)+" must be removed")
	}
	return nil
}

// releasable returns the profile that Release must remove: on the node's hardware, or made for the node and on no hardware; nil if there is
// none. It returns an error of KindInUse if the hardware has the profile that the caller wants removed, but neither driver_info nor its
// mark says that it is the node's.
func (p *Pool) releasable(ctx context.Context, node *ironic.Node, b Binding, h Holding, o ReleaseOptions) (*oneview.Profile, error) {
	profileURI := o.ProfileURI
	if h.Profile != nil && (profileURI == "" || oneview.SameURI(h.Profile.URI, profileURI)) {
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
	if oneview.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	here := profile.HardwareURI == "" || oneview.SameURI(profile.HardwareURI, h.Hardware.URI)
	if !here || !madeFor(profile, node.UUID) {
		o.leave(profile)
		return nil, nil
	}
	return profile, nil
}

// formerly returns the UUID of the node that a profile was made for, if the caller knows the node by a name that no node has any
// more; empty if the profile is gone.
func (p *Pool) formerly(ctx context.Context, name, profileURI string) (string, error) {
	profile, err := p.OneView.Profile(ctx, profileURI)
	if oneview.IsNotFound(err) {
		return "", nil
	}
	if err == nil && markedNode(profile) == "" {
		err = fmt.Errorf("no node is called %s any more, and server profile %s does not say for which node it was made. Set node_id to "+
			"the UUID of the node", name, oneview.ProfileLabel(profile))
	}
	if err != nil {
		return "", err
	}
	return markedNode(profile), nil
}

// releaseOrphan removes the profile of a node that is not in Ironic any more (node is nil) or whose hardware cannot be read. The
// profile must have the mark of that node, and still be on the hardware for which it was made.
func (p *Pool) releaseOrphan(ctx context.Context, node *ironic.Node, o ReleaseOptions, deadline time.Time) error {
	if o.ProfileURI == "" {
		return nil
	}
	profile, err := p.OneView.Profile(ctx, o.ProfileURI)
	switch {
	case oneview.IsNotFound(err):
		return p.retract(ctx, o.NodeID, o.ProfileURI)
	case err != nil:
		return err
	case !madeFor(profile, o.NodeID):
		o.leave(profile)
		return p.retract(ctx, o.NodeID, o.ProfileURI)
	}
	if node != nil {
		if err := maySpare(node, profile); err != nil {
			return err
		}
	}
	if profile.HardwareURI != "" && o.HardwareURI == "" {
		return fmt.Errorf("server profile %s was made for node %s, but its server hardware is not known any more. It is on %s now. "+
			"If no other user has moved it there, delete it in OneView", oneview.ProfileLabel(profile), o.NodeID, profile.HardwareURI)
	}
	if err := p.removeUnlessMoved(ctx, o, removal{profileURI: profile.URI, hardwareURI: o.HardwareURI, deadline: deadline}); err != nil {
		return err
	}
	return p.retract(ctx, o.NodeID, profile.URI)
}
