package oneview

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Pool is server hardware that Ironic and other users of an appliance share.
type Pool struct {
	OneView *Client // nil: none is configured, so that nobody can tell whose shared hardware is
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
	// hardware: a run was interrupted before it could tell Ironic, or is about to. The next Prepare or Release finishes it.
	Unfinished bool

	// Compliance of the profile with the template that it is linked to, as the appliance sees it.
	Compliance Compliance
	// Differences from that template: what the appliance would change, in its words. Of a profile that is not linked they
	// are the parts that differ from the node's own template, as far as can be seen from here.
	Differences []string
}

// ours reports whether the profile on the hardware is Ironic's.
func (h Holding) ours() bool { return h.Ownership == UsedByIronic || h.Unfinished }

// Inspect tells who holds the hardware of a node, and whether its profile still is what the template says.
func (p *Pool) Inspect(ctx context.Context, node *ironic.Node) (Holding, error) {
	b, err := BindingOf(node)
	if err != nil {
		return Holding{}, err
	}
	h, err := p.holding(ctx, node, b)
	if err != nil || h.Profile == nil {
		return h, err
	}
	if h.Compliance = h.Profile.Compliance; h.Compliance == Compliant || !h.ours() {
		return h, nil // what another user's profile should be is not our business
	}
	h.Differences, err = p.differences(ctx, h.Profile, b.TemplateURI)
	return h, err
}

// holding reads the hardware of a node and the profile on it, and applies the rule of ownership.
func (p *Pool) holding(ctx context.Context, node *ironic.Node, b Binding) (Holding, error) {
	if b.HardwareURI == "" {
		return Holding{}, fmt.Errorf("node %s: driver_info.%s is missing: it says which server hardware in OneView the node is",
			ironic.NodeLabel(node), keyHardware)
	}
	for waiting := p.OneView.pace(); ; {
		hardware, err := p.OneView.Hardware(ctx, b.HardwareURI)
		if err != nil {
			return Holding{}, fmt.Errorf("node %s: %w", ironic.NodeLabel(node), err)
		}
		h := Holding{Hardware: hardware, Ownership: Owner(hardware.ProfileURI, b.AppliedURI), Compliance: ComplianceUnknown}
		if h.Ownership == Free {
			h.Stale = b.AppliedURI != ""
			return h, nil
		}
		h.Profile, err = p.OneView.Profile(ctx, hardware.ProfileURI)
		if IsNotFound(err) && waiting.last < 3*waiting.step { // it went after the hardware was read
			if err := sleep(ctx, waiting.next()); err != nil {
				return Holding{}, err
			}
			continue
		}
		if err != nil {
			return h, fmt.Errorf("node %s: %w", ironic.NodeLabel(node), err)
		}
		h.Unfinished = h.Ownership == UsedByOneView && h.Profile.madeFor(node.UUID) && sameURI(h.Profile.HardwareURI, hardware.URI)
		return h, nil
	}
}

// inUse is the refusal of hardware that is used by OneView.
func (h Holding) inUse(node *ironic.Node, b Binding) error {
	return &InUseError{Node: ironic.NodeLabel(node), Hardware: h.Hardware, Profile: h.Profile, Undeclared: b.Mode == Undeclared}
}

// Admit returns an InUseError if the hardware of a node is used by OneView, an UnguardedError if that cannot be known because no
// OneView is configured, and nil if it may be worked on: it is free or ours, the node is pre-allocated, or it has nothing to do
// with OneView.
func (p *Pool) Admit(ctx context.Context, node *ironic.Node) error {
	_, err := p.admit(ctx, node)
	return err
}

// Deployable is Admit for a node that is about to get an instance: a shared one needs a profile of ours first, which gives it
// its networks and keeps others from taking it. Without one it is a NoProfileError.
func (p *Pool) Deployable(ctx context.Context, node *ironic.Node) error {
	owner, err := p.admit(ctx, node)
	if err == nil && owner == Free {
		return &NoProfileError{Node: ironic.NodeLabel(node)}
	}
	return err
}

// admit also tells who uses the hardware; empty if the rules of ownership do not apply to it.
func (p *Pool) admit(ctx context.Context, node *ironic.Node) (Ownership, error) {
	b, err := BindingOf(node)
	if err != nil || !b.Shared() {
		return "", err
	}
	if p.OneView == nil {
		return "", &UnguardedError{Node: ironic.NodeLabel(node), HardwareURI: b.HardwareURI}
	}
	h, err := p.holding(ctx, node, b)
	var refused *StatusError
	if err != nil && (h.Ownership != UsedByOneView || !errors.As(err, &refused)) {
		return "", err
	}
	if h.Ownership == UsedByOneView && !h.Unfinished {
		return "", h.inUse(node, b) // even if its profile may not be read
	}
	return h.Ownership, nil
}

// announce tells Ironic which profile is applied to a node, and that the node is allocated dynamically if it did not say.
func (p *Pool) announce(ctx context.Context, node *ironic.Node, profileURI string) (*ironic.Node, error) {
	var patch ironic.Patch
	if applied, _ := node.DriverInfo[keyApplied].(string); applied != profileURI {
		patch.Set("/driver_info/"+keyApplied, profileURI)
	}
	if _, declared := node.DriverInfo[keyDynamic]; !declared {
		patch.Set("/driver_info/"+keyDynamic, true)
	}
	if len(patch) == 0 {
		return node, nil
	}
	now, err := p.Ironic.PatchNode(ctx, node.UUID, patch)
	if err != nil {
		return node, fmt.Errorf("node %s: write driver_info.%s: %w", ironic.NodeLabel(node), keyApplied, err)
	}
	return now, nil
}

// retract takes back what announce has told, if the node still names one of these profiles. That the node is gone is no
// error.
func (p *Pool) retract(ctx context.Context, nodeID string, profileURIs ...string) error {
	node, err := p.Ironic.Node(ctx, nodeID)
	if ironic.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	applied, _ := node.DriverInfo[keyApplied].(string)
	for _, uri := range profileURIs {
		if !sameURI(applied, uri) {
			continue
		}
		var patch ironic.Patch
		patch.Remove("/driver_info/" + keyApplied)
		if _, err := p.Ironic.PatchNode(ctx, nodeID, patch); err != nil && !ironic.IsNotFound(err) {
			return fmt.Errorf("node %s: remove driver_info.%s: %w", ironic.NodeLabel(node), keyApplied, err)
		}
		return nil
	}
	return nil
}

// stamina says how long something is tried: waiting for the appliance's own work until the deadline, through trouble while
// its patience lasts, and through failures of its tasks a few times.
type stamina struct {
	c        *Client
	doing    string
	begun    time.Time
	deadline time.Time
	waiting  *pace
	trouble  time.Time // since when
	failures int
}

// maxFailures is how many tasks may fail: what was in their way, such as a server that somebody has switched on, is looked
// at anew each time.
const maxFailures = 3

func (c *Client) stamina(doing string, deadline time.Time) *stamina {
	return &stamina{c: c, doing: doing, begun: time.Now(), deadline: deadline, waiting: c.pace()}
}

// again waits before the next try, after an error or for what the appliance is doing, or returns why there is no next one.
func (s *stamina) again(ctx context.Context, err error) error {
	var failed *TaskError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
	case errors.As(err, &failed):
		if s.failures++; s.failures >= maxFailures {
			return err
		}
	case isTransient(err) || isUncertain(err) || errors.Is(err, errTaskLost) || errors.Is(err, errShifted):
		if s.trouble.IsZero() {
			s.trouble = time.Now()
		} else if time.Since(s.trouble) > s.c.cfg.Patience {
			return err
		}
	default:
		return err
	}
	wait := max(s.waiting.next(), retryAfter(err))
	if time.Now().Add(wait).After(s.deadline) {
		if err != nil {
			return err
		}
		return &TimeoutError{Doing: s.doing, After: time.Since(s.begun)}
	}
	return sleep(ctx, wait)
}
