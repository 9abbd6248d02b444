package sharing

import (
	"context"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// verbCheckLimit is how long Check may take right before a verb, while other nodes wait for the slot.
const verbCheckLimit = 5 * time.Second

// NotConfigured is the guard if no OneView is configured. It refuses machines that are shared with OneView, because it cannot know
// who uses them, and makes no request.
type NotConfigured struct{}

// Check returns an error of kindUnguarded for a shared machine.
func (NotConfigured) Check(_ context.Context, step machine.Step) error {
	b, err := BindingOf(step.Node)
	if err == nil && b.Shared() {
		err = &failure.Error{
			Kind: kindUnguarded, Node: step.Node,
			Fact: Unguarded(ironic.NodeLabel(step.Node), b.HardwareURI) + ". The server is unchanged",
		}
	}
	return err
}

// Check implements machine.Guard. It refuses to boot, switch or erase a machine whose hardware OneView uses, and to deploy one
// that has no server profile. For a node without server_hardware_uri it makes no request.
//
// Before the wait for a slot, Check gives a machine that is to be cleaned or inspected a temporary profile, which EndTemporary
// removes. A machine that is to be undeployed and has lost its profile gets one, too, because Ironic cleans it next.
func (p *Pool) Check(ctx context.Context, step machine.Step) error {
	if b, err := BindingOf(step.Node); err == nil && b.HardwareURI == "" {
		return nil
	}
	switch step.Stage {
	case machine.BeforeWrite:
		return p.checkWrite(ctx, step)
	case machine.BeforeQueue:
		return p.checkQueue(ctx, step)
	case machine.BeforeVerb:
		return p.checkVerb(ctx, step)
	}
	return fmt.Errorf("no check for stage %d", step.Stage)
}

// Prepares implements the preparer of package machine.
func (p *Pool) Prepares(node *ironic.Node) bool {
	b, err := BindingOf(node)
	return err != nil || b.HardwareURI != ""
}

// checkWrite requires a profile only for a new instance: a present one had its profile when it was deployed.
func (p *Pool) checkWrite(ctx context.Context, step machine.Step) error {
	if step.Verb == nodes.TargetActive {
		return p.checkProfile(ctx, step.Node)
	}
	return p.CheckUsable(ctx, step.Node)
}

func (p *Pool) checkQueue(ctx context.Context, step machine.Step) error {
	node, err := p.Site.Ironic.Node(ctx, step.Node.UUID) // step.Node may lack fields
	if err != nil {
		return err
	}
	if states.InstallsInstance(step.Verb) {
		return p.checkProfile(ctx, node)
	}
	purpose := purposeOf(node, step.Verb)
	if purpose == "" {
		return p.CheckUsable(ctx, node)
	}
	if step.Verb != nodes.TargetDeleted {
		_, err = p.Temporary(ctx, node, purpose, step.Limit)
		return err
	}
	if own, err := p.hasPermanent(ctx, node); err != nil || own {
		return err
	}
	_, err = p.temporary(ctx, node, purpose, step.Limit, true)
	return err
}

// hasPermanent reports whether a node is cleaned with the profile of its deployment, which is still on its hardware. It returns an
// error of KindInUse if OneView uses the hardware.
func (p *Pool) hasPermanent(ctx context.Context, node *ironic.Node) (bool, error) {
	owner, err := p.usedBy(ctx, node)
	if err != nil || owner != UsedByIronic {
		return false, err
	}
	profile, err := p.Temporarily(ctx, node)
	return profile == nil, err
}

func (p *Pool) checkVerb(ctx context.Context, step machine.Step) error {
	within, cancel := context.WithTimeout(ctx, verbCheckLimit)
	defer cancel()
	node, err := p.Site.Ironic.Node(within, step.Node.UUID)
	if err == nil {
		err = p.checkUnchanged(within, node, step.Verb)
	}
	if within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("node %s: OneView did not answer within %s who uses its hardware. Nothing was sent to Ironic. Try again",
			ironic.NodeLabel(step.Node), verbCheckLimit)
	}
	return err
}

// checkUnchanged refuses the operation that checkQueue has allowed if a user of OneView has taken the hardware since, or if its
// profile is gone.
func (p *Pool) checkUnchanged(ctx context.Context, node *ironic.Node, verb ironic.Verb) error {
	if states.InstallsInstance(verb) {
		return p.checkProfile(ctx, node)
	}
	owner, err := p.usedBy(ctx, node)
	if purpose := purposeOf(node, verb); err == nil && owner == Free && purpose != "" {
		return lostProfile(node, purpose)
	}
	return err
}

// checkProfile is CheckUsable for a node that is about to be deployed. Shared hardware needs a profile of ours first, which connects
// its networks and keeps other users from taking it. Without one it returns an error of kindNoProfile.
func (p *Pool) checkProfile(ctx context.Context, node *ironic.Node) error {
	owner, err := p.usedBy(ctx, node)
	if err == nil && owner == Free {
		return &failure.Error{
			Kind: kindNoProfile, Node: node,
			Fact: fmt.Sprintf("node %s has no server profile: its server would boot without OneView's networks, and other users could "+
				"take it at any moment. Add a metal_oneview_profile, and let the node's metal_deployment depend on it",
				ironic.NodeLabel(node)),
		}
	}
	return err
}

// purposeOf returns why a node needs a profile while Ironic executes a verb: a temporary one, unless it has another. It returns "" if
// the node needs no profile, or the one of its deployment.
func purposeOf(node *ironic.Node, verb ironic.Verb) Purpose {
	switch verb { //nolint:exhaustive // the verbs after which a ramdisk boots
	case nodes.TargetProvide, nodes.TargetDeleted:
		if cleansAutomatically(node) {
			return Cleaning
		}
	case nodes.TargetClean:
		return Cleaning
	case nodes.TargetInspect:
		return Inspecting
	}
	return ""
}

// cleansAutomatically reports whether the verb provide cleans a node, as far as Ironic's API shows.
func cleansAutomatically(node *ironic.Node) bool {
	return node.AutomatedClean == nil || *node.AutomatedClean
}

// Temporarily returns the profile on a node's hardware if it is a temporary one of ours, else nil. It makes no request for a node
// without an applied profile in driver_info.
func (p *Pool) Temporarily(ctx context.Context, node *ironic.Node) (*oneview.Profile, error) {
	b, err := BindingOf(node)
	if err != nil || !b.Shared() || b.AppliedURI == "" {
		return nil, err
	}
	profile, err := p.OneView.Profile(ctx, b.AppliedURI)
	if oneview.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil || !isTemporary(profile.Name, node.UUID) {
		return nil, err
	}
	return profile, nil
}

// EndTemporary removes the temporary profile from a node's hardware, if Ironic knows of one. A limit of zero means DefaultLimit.
func (p *Pool) EndTemporary(ctx context.Context, nodeID string, limit time.Duration) error {
	return p.endTemporary(ctx, nodeID, limit, p.Temporarily)
}

// EndTemporaryOf is EndTemporary for a node on which an operation has ended; p may be nil or not configured. It does nothing if the run
// was interrupted, or while the node may run something: the next run removes the profile.
func (p *Pool) EndTemporaryOf(ctx context.Context, node *ironic.Node, limit time.Duration) error {
	if p == nil || !p.OneView.Known() || ctx.Err() != nil || !states.Parked(ironic.State(node.ProvisionState)) {
		return nil //nolint:nilerr // what was interrupted has reported that
	}
	if err := p.EndTemporary(ctx, node.UUID, limit); err != nil {
		return fmt.Errorf("remove the temporary server profile: %w", err)
	}
	return nil
}

// Vacate is EndTemporary for a node that is about to be deleted. It also finds a temporary profile that is not in driver_info, because
// a run was killed before it could write that. Without the node, no later run could find the profile.
func (p *Pool) Vacate(ctx context.Context, nodeID string, limit time.Duration) error {
	return p.endTemporary(ctx, nodeID, limit, func(ctx context.Context, node *ironic.Node) (*oneview.Profile, error) {
		profile, err := p.Temporarily(ctx, node)
		if err == nil && profile == nil {
			return p.temporarilyUnrecorded(ctx, node)
		}
		return profile, err
	})
}

func (p *Pool) endTemporary(ctx context.Context, nodeID string, limit time.Duration,
	find func(context.Context, *ironic.Node) (*oneview.Profile, error),
) error {
	node, err := p.Site.Ironic.Node(ctx, nodeID)
	if err != nil {
		return err
	}
	profile, err := find(ctx, node)
	if err != nil || profile == nil {
		return err
	}
	return p.Release(ctx, ReleaseOptions{NodeID: node.UUID, ProfileURI: profile.URI, Limit: limit})
}

// temporarilyUnrecorded is Temporarily for a profile that is not in driver_info: it is on the hardware, and has the node's mark.
func (p *Pool) temporarilyUnrecorded(ctx context.Context, node *ironic.Node) (*oneview.Profile, error) {
	b, err := BindingOf(node)
	if err != nil || !b.Shared() {
		return nil, err
	}
	if !oneview.IsHardwareURI(b.HardwareURI) {
		return nil, nil //nolint:nilnil // not a URI of server hardware, so it has no profile
	}
	h, err := p.holding(ctx, node, b)
	gone := oneview.IsNotFound(err) && h.Hardware == nil
	theirs := oneview.IsForbidden(err) && h.Ownership == UsedByOneView // the user may not even read the profile
	if gone || theirs {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil || !h.Unfinished || !isTemporary(h.Profile.Name, node.UUID) {
		return nil, err
	}
	return h.Profile, nil
}

// lacksTemplate reports whether a node needs a profile for its cleaning, and has neither a profile nor a template.
func lacksTemplate(node *ironic.Node, owner Ownership, b Binding) bool {
	return cleansAutomatically(node) && owner == Free && b.TemplateURI == ""
}

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

func isTemporary(name, nodeID string) bool {
	return name == temporaryName(Cleaning, nodeID) || name == temporaryName(Inspecting, nodeID)
}

// Temporary gives a node's hardware a temporary profile, unless it has one of Ironic's already. release removes the profile if it is
// temporary, including that of a killed run. A node that is pre-allocated or not in OneView gets no profile. release is never nil. A
// limit of zero means DefaultLimit.
func (p *Pool) Temporary(ctx context.Context, node *ironic.Node, purpose Purpose,
	limit time.Duration,
) (release func(context.Context) error, err error) {
	return p.temporary(ctx, node, purpose, limit, false)
}

// temporary is Temporary with a further argument. ends says that the next operation ends what runs on the machine, so the machine may
// be switched off to get its profile.
func (p *Pool) temporary(ctx context.Context, node *ironic.Node, purpose Purpose, limit time.Duration,
	ends bool,
) (release func(context.Context) error, err error) {
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
