package oneview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// PrepareOptions says what profile a node shall have.
type PrepareOptions struct {
	NodeID string
	// Name of the profile; empty: "<node name> [<node UUID>]". If the hardware has a profile of ours already, an empty name
	// leaves it as it is, unless it is a temporary one: that is renamed, because Sync removes temporary profiles that are
	// not needed any more.
	Name string
	// HardwareURI must be server_hardware_uri of the node, if that is set; if it is not, it is written there. Empty: that.
	HardwareURI string
	// TemplateURI is what the profile is made from; empty: server_profile_template_uri of the node. A profile of ours that
	// the hardware has already, and that is linked to another template, is brought to this one if it is not empty.
	TemplateURI string
	Limit       time.Duration // zero: DefaultLimit

	// Record is called with the profile's URI as soon as it is known, which is before it is applied, and with "" when it
	// was removed again because it could not be applied. It may be nil.
	Record func(profileURI string)
}

// DefaultLimit is how long Prepare and Release work at most, if not told otherwise: what the appliance's own tools allow.
const DefaultLimit = 45 * time.Minute

// Applied is a profile that is applied to the hardware of a node.
type Applied struct {
	Profile  *Profile
	Hardware *Hardware
	Reused   bool // it was there already
}

// Prepare gives a node's hardware a server profile made from a template, and tells Ironic. A profile of ours that is there
// already is used, also one that an interrupted run has begun.
//
// It works from what it sees, not from what it remembers, so that it can be begun again after being killed at any request:
// the profile's description names the node (see mark), and that is written with the profile itself. Then the caller gets the
// URI, then Ironic; both before the profile is applied. Errors are InUseError, MismatchError, NameTakenError, OccupiedError,
// PreAllocatedError, TaskError, TimeoutError and LeftoverError, besides those of the two APIs. After all but TimeoutError,
// LeftoverError, an interruption and trouble with the two APIs nothing is left that was not there before.
func (p *Pool) Prepare(ctx context.Context, o PrepareOptions) (*Applied, error) {
	r, err := p.newPreparation(ctx, o)
	if err != nil {
		return nil, err
	}
	applied, err := r.run(ctx)
	if err != nil {
		return nil, r.clearUp(ctx, err)
	}
	return applied, nil
}

// preparation is one Prepare at work.
type preparation struct {
	p         *Pool
	o         PrepareOptions
	temporary Purpose // what a temporary profile is for; empty: it is one to stay
	node      *ironic.Node
	binding   Binding
	name      string // for a new profile
	deadline  time.Time

	draft    document // as the template wants it; nil: not asked for yet
	posted   time.Time
	task     string // of ours, the last one
	made     string // the profile that a task of ours has made
	failure  error  // of that task
	recorded string // what Record was last told
	discards int
	posts    int // accepted, or perhaps accepted
}

// newPreparation reads the node and checks what was asked for.
func (p *Pool) newPreparation(ctx context.Context, o PrepareOptions) (*preparation, error) {
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	node, err := p.Ironic.Node(ctx, o.NodeID)
	if err != nil {
		return nil, err
	}
	r := &preparation{p: p, o: o, name: o.Name, deadline: time.Now().Add(o.Limit)}
	if err := r.adopt(node); err != nil {
		return nil, err
	}
	if r.binding.Mode == PreAllocated {
		return nil, &PreAllocatedError{Node: node}
	}
	if r.name == "" {
		r.name = strings.TrimSpace(node.Name + " [" + node.UUID + "]")
	}
	if strings.ContainsAny(r.name, `'"`) || strings.TrimSpace(r.name) != r.name {
		return nil, fmt.Errorf("the name %s of a server profile must have no quotes, and no spaces at its ends", r.name)
	}
	return r, nil
}

// adopt takes a node as Ironic has it now.
func (r *preparation) adopt(node *ironic.Node) error {
	b, err := BindingOf(node)
	if err != nil {
		return err
	}
	if r.o.HardwareURI != "" {
		if b.HardwareURI != "" && !sameURI(b.HardwareURI, r.o.HardwareURI) {
			return fmt.Errorf("node %s: its driver_info.%s is %s, not %s: correct one of the two",
				ironic.NodeLabel(node), keyHardware, b.HardwareURI, r.o.HardwareURI)
		}
		b.HardwareURI = r.o.HardwareURI
	}
	if r.o.TemplateURI != "" {
		b.TemplateURI = r.o.TemplateURI
	}
	r.node, r.binding = node, b
	return nil
}

// run looks what there is, and does the next thing, until the node has its profile.
func (r *preparation) run(ctx context.Context) (*Applied, error) {
	tries := r.p.OneView.stamina("applying server profile "+r.name, r.deadline)
	for {
		seen, err := r.find(ctx)
		switch {
		case err != nil:
		case seen.busy():
		case seen.profile == nil && r.isFinal(seen.Hardware):
			return nil, r.failure
		case seen.profile == nil:
			err = r.create(ctx, seen.Hardware)
		case seen.loose || r.broken(seen):
			if err := r.discard(ctx, seen); err != nil {
				return nil, err
			}
		default:
			return r.take(ctx, seen)
		}
		if err := tries.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// sight is what can be seen of a profile of ours for the node.
type sight struct {
	Holding
	profile *Profile // ours; nil: none
	loose   bool     // it is on no hardware
}

// busy reports whether the appliance is at work on the profile or its hardware, or does not show yet where the profile is.
func (s sight) busy() bool {
	if s.profile == nil {
		return s.Hardware.settling()
	}
	return s.profile.InProgress || s.Hardware.settling() || (s.Hardware.ProfileURI == "" && !s.loose)
}

// find looks for a profile of ours: on the hardware, where Ironic or our own task have it, and under its name. Hardware of
// somebody else is an InUseError, a name of somebody else's a NameTakenError.
func (r *preparation) find(ctx context.Context) (sight, error) {
	h, err := r.p.holding(ctx, r.node, r.binding)
	if err != nil {
		return sight{}, err
	}
	seen := sight{Holding: h}
	if h.ours() {
		seen.profile = h.Profile
		return seen, nil
	}
	if h.Ownership == UsedByOneView {
		return seen, h.inUse(r.node, r.binding)
	}
	for _, uri := range []string{r.made, r.binding.AppliedURI} {
		if uri == "" {
			continue
		}
		profile, err := r.p.OneView.Profile(ctx, uri)
		if err != nil && !IsNotFound(err) {
			return seen, err
		}
		if err == nil && seen.consider(profile, r.node.UUID) {
			return seen, nil
		}
	}
	named, err := r.p.OneView.ListProfiles(ctx, ProfileFilter{Name: r.name})
	if err != nil {
		return seen, err
	}
	for i := range named {
		if !seen.consider(&named[i], r.node.UUID) {
			return seen, &NameTakenError{Node: ironic.NodeLabel(r.node), Profile: &named[i]}
		}
	}
	return seen, nil
}

// consider takes a profile that the hardware does not show for ours, if it is: it carries the node's mark, and is on this
// hardware or on none.
func (s *sight) consider(profile *Profile, nodeID string) bool {
	loose := profile.HardwareURI == ""
	if !profile.madeFor(nodeID) || (!loose && !sameURI(profile.HardwareURI, s.Hardware.URI)) {
		return false
	}
	s.profile, s.loose = profile, loose
	return true
}

// broken reports whether a profile of ours could not be applied, and has to go: the task says so, or, if that was of an
// earlier run, the hardware does.
func (r *preparation) broken(seen sight) bool {
	if r.failure != nil && sameURI(r.made, seen.profile.URI) {
		return true
	}
	return seen.Hardware.State == HardwareProfileError && seen.profile.madeFor(r.node.UUID)
}

// discard removes a profile of ours that is of no use. If this run has failed to apply it, that is the end, and the error.
func (r *preparation) discard(ctx context.Context, seen sight) error {
	if r.made == "" && seen.profile.TaskURI != "" && !sameURI(seen.profile.TaskURI, r.task) {
		r.failure = nil // an earlier run's profile was in the way of ours, and did not work out either
	}
	if r.failure == nil && !seen.loose {
		if err := r.mayStop("the server profile that an earlier run could not apply has to be removed"); err != nil {
			return err
		}
	}
	if r.discards++; r.discards > maxFailures {
		return fmt.Errorf("node %s: server profile %s cannot be applied", ironic.NodeLabel(r.node), ProfileLabel(seen.profile))
	}
	if err := r.withdraw(ctx, seen.profile); err != nil {
		if ctx.Err() != nil || r.failure == nil {
			return err
		}
		return &LeftoverError{
			ProfileURI: seen.profile.URI, ProfileName: seen.profile.Name, Hardware: seen.Hardware, Cause: r.failure, CleanUp: err,
		}
	}
	return r.failure
}

// withdraw removes a profile and tells so.
func (r *preparation) withdraw(ctx context.Context, profile *Profile) error {
	if err := r.p.remove(ctx, removal{profileURI: profile.URI, hardwareURI: r.binding.HardwareURI, deadline: r.deadline}); err != nil {
		return err
	}
	r.made = ""
	if err := r.p.retract(ctx, r.node.UUID, profile.URI); err != nil {
		return err
	}
	r.binding.AppliedURI = ""
	r.record("")
	return nil
}

// mayStop refuses to disturb a machine on which something may run.
func (r *preparation) mayStop(reason string) error {
	if !ironic.Parked(ironic.State(r.node.ProvisionState)) {
		return &OccupiedError{Node: r.node, Reason: reason}
	}
	return nil
}

// record tells the caller where the profile is, once.
func (r *preparation) record(uri string) {
	if r.recorded == uri {
		return
	}
	r.recorded = uri
	if r.o.Record != nil {
		r.o.Record(uri)
	}
}

// announce tells the caller and Ironic where the profile is.
func (r *preparation) announce(ctx context.Context, uri string) error {
	uri = profileCollection.canonical(uri)
	r.record(uri)
	node, err := r.p.announce(ctx, r.node, uri)
	if err != nil {
		return err
	}
	return r.adopt(node)
}

// take makes a profile that is applied to the hardware the node's own.
func (r *preparation) take(ctx context.Context, seen sight) (*Applied, error) {
	if err := r.announce(ctx, seen.profile.URI); err != nil {
		return nil, err
	}
	reused := r.posted.IsZero()
	profile := seen.profile
	if reused {
		var err error
		if profile, err = r.p.revise(ctx, r.node, r.binding, r.revision(profile), r.deadline); err != nil {
			return nil, err
		}
	}
	h, err := r.p.holding(ctx, r.node, r.binding)
	if err != nil {
		return nil, err
	}
	if h.Ownership != UsedByIronic || !sameURI(h.Profile.URI, profile.URI) {
		if h.Ownership == UsedByOneView {
			return nil, h.inUse(r.node, r.binding)
		}
		return nil, fmt.Errorf("node %s: server profile %s, on %s: %w", ironic.NodeLabel(r.node), ProfileLabel(profile), HardwareLabel(h.Hardware), errShifted)
	}
	if h.Hardware.State == HardwareProfileError {
		return nil, fmt.Errorf("node %s: server profile %s is on %s, but not applied to it: its state is %q. Mend that in OneView, or delete the profile there",
			ironic.NodeLabel(r.node), ProfileLabel(profile), HardwareLabel(h.Hardware), h.Hardware.State)
	}
	return &Applied{Profile: h.Profile, Hardware: h.Hardware, Reused: reused}, nil
}

// revision is what has to change of a profile that was there already.
func (r *preparation) revision(profile *Profile) revision {
	change := revision{profileURI: profile.URI}
	if r.temporary != "" {
		return change
	}
	if r.o.Name != "" || isTemporary(profile.Name, r.node.UUID) {
		change.name = r.name
	}
	if profile.TemplateURI != "" && r.o.TemplateURI != "" && !sameURI(profile.TemplateURI, r.o.TemplateURI) {
		change.templateURI, change.comply = r.o.TemplateURI, true
	}
	return change
}

// clearUp removes what this run has made and cannot use, because another user was faster or the node is gone. After an
// interruption, a timeout or trouble with one of the APIs everything stays: the next run goes on from there.
func (r *preparation) clearUp(ctx context.Context, cause error) error {
	var taken *InUseError
	lost := errors.As(cause, &taken) || errors.Is(cause, errShifted) || ironic.IsNotFound(cause)
	if r.made == "" || !lost || ctx.Err() != nil {
		return cause
	}
	made := &Profile{URI: r.made, Name: r.name}
	err := r.withdraw(ctx, made)
	var moved *movedError
	if err == nil || errors.As(err, &moved) || ctx.Err() != nil {
		return cause
	}
	return &LeftoverError{
		ProfileURI: made.URI, ProfileName: made.Name, Hardware: &Hardware{URI: r.binding.HardwareURI}, Cause: cause, CleanUp: err,
	}
}
