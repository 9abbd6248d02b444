package oneview

import (
	"context"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// stillLimit is how long Still may keep others waiting.
const stillLimit = 5 * time.Second

// Still refuses, as Ready does, to touch hardware that OneView users have taken while its node was in the queue, and to boot a
// machine that has lost its server profile there.
func (p *Pool) Still(ctx context.Context, seen *ironic.Node, verb ironic.Verb) error {
	if p.OneView == nil {
		return nil // Ready has looked at all that there is
	}
	within, cancel := context.WithTimeout(ctx, stillLimit)
	defer cancel()
	node, err := p.Ironic.Node(within, seen.UUID)
	if err == nil {
		err = p.still(within, node, verb)
	}
	if within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("node %s: OneView did not tell within %s who uses its hardware; nothing was sent", ironic.NodeLabel(seen), stillLimit)
	}
	return err
}

func (p *Pool) still(ctx context.Context, node *ironic.Node, verb ironic.Verb) error {
	if boots(verb) {
		return p.Deployable(ctx, node)
	}
	owner, err := p.admit(ctx, node)
	if purpose := purposeOf(node, verb); err == nil && owner == Free && purpose != "" {
		return &LostProfileError{Node: ironic.NodeLabel(node), Purpose: purpose}
	}
	return err
}

// boots reports whether a machine runs what it is for after a verb.
func boots(verb ironic.Verb) bool { return verb == nodes.TargetActive || verb == nodes.TargetRebuild }

// purposeOf is what a node needs a profile for, at least a temporary one, while Ironic does what a verb asks for; empty: for
// nothing, or for an instance.
func purposeOf(node *ironic.Node, verb ironic.Verb) Purpose {
	switch verb { //nolint:exhaustive // the verbs after which a ramdisk boots
	case nodes.TargetProvide:
		if cleans(node) {
			return Cleaning
		}
	case nodes.TargetClean:
		return Cleaning
	case nodes.TargetInspect:
		return Inspecting
	}
	return ""
}

// cleans reports whether Ironic cleans a node that is provided, as far as its API shows.
func cleans(node *ironic.Node) bool { return node.AutomatedClean == nil || *node.AutomatedClean }

// Ready makes a pool an ironic.Guard: whatever boots, switches or erases a machine is refused while OneView users have its
// hardware, or deployed while it has no server profile; and before Ironic cleans or inspects a machine that has none, it is
// given a temporary one, which EndTemporary removes. Where no OneView is configured, all that is refused to shared machines, and
// costs no request.
func (p *Pool) Ready(ctx context.Context, seen *ironic.Node, verb ironic.Verb) error {
	if p.OneView == nil {
		return p.Admit(ctx, seen)
	}
	node, err := p.Ironic.Node(ctx, seen.UUID) // what was seen may come from a short list
	if err != nil {
		return err
	}
	if boots(verb) {
		return p.Deployable(ctx, node)
	}
	purpose := purposeOf(node, verb)
	if purpose == "" {
		return p.Admit(ctx, node)
	}
	_, err = p.Temporary(ctx, node, purpose, 0)
	return err
}

// Temporarily returns the profile on a node's hardware if it is a temporary one of ours, and nil if it is not, or if the node
// has nothing to do with OneView. It costs no request for a node to which Ironic has applied nothing.
func (p *Pool) Temporarily(ctx context.Context, node *ironic.Node) (*Profile, error) {
	b, err := BindingOf(node)
	if err != nil || !b.Shared() || b.AppliedURI == "" {
		return nil, err
	}
	profile, err := p.OneView.Profile(ctx, b.AppliedURI)
	if IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil || !isTemporary(profile.Name, node.UUID) {
		return nil, err
	}
	return profile, nil
}

// EndTemporary removes the temporary profile from a node's hardware, if Ironic knows of one. A limit of zero is DefaultLimit.
func (p *Pool) EndTemporary(ctx context.Context, nodeID string, limit time.Duration) error {
	return p.endTemporary(ctx, nodeID, limit, p.Temporarily)
}

// Vacate is EndTemporary for a node that is about to be deleted: it also finds a temporary profile that Ironic does not know of,
// because a run died before it could tell. Without the node nobody would find that again.
func (p *Pool) Vacate(ctx context.Context, nodeID string, limit time.Duration) error {
	return p.endTemporary(ctx, nodeID, limit, func(ctx context.Context, node *ironic.Node) (*Profile, error) {
		profile, err := p.Temporarily(ctx, node)
		if err == nil && profile == nil {
			return p.temporarilyUntold(ctx, node)
		}
		return profile, err
	})
}

func (p *Pool) endTemporary(ctx context.Context, nodeID string, limit time.Duration, find func(context.Context, *ironic.Node) (*Profile, error)) error {
	node, err := p.Ironic.Node(ctx, nodeID)
	if err != nil {
		return err
	}
	profile, err := find(ctx, node)
	if err != nil || profile == nil {
		return err
	}
	return p.Release(ctx, ReleaseOptions{NodeID: node.UUID, ProfileURI: profile.URI, Limit: limit})
}

// temporarilyUntold is Temporarily for a profile that Ironic does not know of: it is on the hardware, and carries the node's mark.
func (p *Pool) temporarilyUntold(ctx context.Context, node *ironic.Node) (*Profile, error) {
	b, err := BindingOf(node)
	if err != nil || !b.Shared() {
		return nil, err
	}
	if _, err := hardwareCollection.path(b.HardwareURI); err != nil {
		return nil, nil //nolint:nilerr,nilnil // no server hardware is called that, so nothing was ever made there
	}
	h, err := p.holding(ctx, node, b)
	gone := IsNotFound(err) && h.Hardware == nil
	theirs := isForbidden(err) && h.Ownership == UsedByOneView // a profile that may not even be read
	if gone || theirs {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil || !h.Unfinished || !isTemporary(h.Profile.Name, node.UUID) {
		return nil, err
	}
	return h.Profile, nil
}
