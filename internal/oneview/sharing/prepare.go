package sharing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// ProfileSpec describes the profile that Prepare gives a node.
type ProfileSpec struct {
	NodeID string
	// Name of the profile; empty: "<node name> [<node UUID>]". If the hardware has a profile of ours already, an empty name keeps its
	// name. Only a temporary profile is renamed, because Sync removes unused temporary profiles.
	Name string
	// HardwareURI must equal server_hardware_uri of the node. If the node has none, Prepare writes it there. Empty: that of the node.
	HardwareURI string
	// TemplateURI is the template of the profile; empty: server_profile_template_uri of the node. If the hardware has a profile of
	// ours already that is linked to another template, Prepare links it to this one, unless TemplateURI is empty.
	TemplateURI string
	Limit       time.Duration // zero: DefaultLimit

	// Record is called with the profile's URI as soon as it is known, before the profile is applied, and with "" after the profile
	// was removed because it could not be applied. It may be nil.
	Record func(profileURI string)
}

// DefaultLimit is the default time-out of Prepare and Release. The appliance's own tools use the same value.
const DefaultLimit = 45 * time.Minute

// Applied is a profile that is applied to the hardware of a node.
type Applied struct {
	Profile  *oneview.Profile
	Hardware *oneview.Hardware
	Reused   bool // it existed already
}

// Prepare gives a node's hardware a server profile made from a template, and writes it into the node's driver_info. It uses a profile
// of ours that exists already, including that of an interrupted run.
//
// Prepare can be repeated after it was killed at any request, because the profile's description names the node from the start (see
// mark). Prepare then passes the URI to the caller, then to Ironic, both before the profile is applied. Errors are of
// KindInUse, KindUnwatched, KindMismatch, KindNameTaken, KindOccupied, kindPreAllocated, KindLeftover, or of the two APIs. It may leave
// a profile behind only after KindLeftover, a time-out, an interruption or an error of the two APIs.
func (p *Pool) Prepare(ctx context.Context, o ProfileSpec) (*Applied, error) {
	r, err := p.newPreparation(ctx, o)
	if err != nil {
		return nil, err
	}
	applied, err := r.run(ctx)
	if err != nil {
		return nil, r.unwatched(ctx, r.clearUp(ctx, err))
	}
	return applied, nil
}

// unwatched returns an error of failure.KindUnwatched if the appliance has the profile, and the user lacks the rights or one of the APIs
// does not answer, so that nothing is known of the profile.
func (r *preparation) unwatched(ctx context.Context, err error) error {
	access := fault.Is(err, oneview.KindLogin) || oneview.IsForbidden(err) || oneview.IsTransient(err) || failure.IsAccess(err)
	if r.recorded == "" || !access || failure.Is(err, KindLeftover) || ctx.Err() != nil {
		return err
	}
	return failure.NewUnwatched(fmt.Sprintf("server profile %s of node %s", r.name, ironic.NodeLabel(r.node)), "", err)
}

// preparation is the state of one call of Prepare.
type preparation struct {
	p         *Pool
	o         ProfileSpec
	temporary Purpose // purpose of a temporary profile; empty: a permanent one
	ends      bool    // the next operation ends what runs on the machine
	node      *ironic.Node
	binding   Binding
	name      string // for a new profile
	deadline  time.Time

	draft    oneview.Document // as the template defines it; nil: not read yet
	posted   time.Time
	task     string // the last task of this run
	made     string // URI of the profile that a task of this run has created
	failure  error  // of that task
	recorded string // last argument of Record
	discards int
	posts    int // requests that the appliance has accepted, or may have
}

func (p *Pool) newPreparation(ctx context.Context, o ProfileSpec) (*preparation, error) {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	node, err := p.Site.Ironic.Node(ctx, o.NodeID)
	if err != nil {
		return nil, err
	}
	r := &preparation{p: p, o: o, name: o.Name, deadline: time.Now().Add(o.Limit)}
	if err := r.adopt(node); err != nil {
		return nil, err
	}
	if r.binding.Mode == PreAllocated {
		return nil, &failure.Error{
			Kind: kindPreAllocated, Node: node,
			Fact: fmt.Sprintf("node %s is pre-allocated (driver_info.%s is false): it always has a server profile, which the provider "+
				"does not manage. Move the node to dynamic allocation first, with metal oneview migrate",
				ironic.NodeLabel(node), keyDynamic),
		}
	}
	r.name = cmp.Or(r.name, strings.TrimSpace(node.Name+" ["+node.UUID+"]"))
	if strings.ContainsAny(r.name, `'"`) || strings.TrimSpace(r.name) != r.name {
		return nil, fmt.Errorf("the name %s of a server profile must have no quotes, and no spaces at its ends", r.name)
	}
	return r, nil
}

// adopt sets the node, and its binding with the URIs of the specification. It refuses hardware that is not the node's.
func (r *preparation) adopt(node *ironic.Node) error {
	b, err := BindingOf(node)
	if err != nil {
		return err
	}
	if r.o.HardwareURI != "" {
		if b.HardwareURI != "" && !oneview.SameURI(b.HardwareURI, r.o.HardwareURI) {
			return fmt.Errorf("node %s: its driver_info.%s is %s, not %s. Correct one of the two",
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

// run reads the present state and does the next step, until the node has its profile.
func (r *preparation) run(ctx context.Context) (*Applied, error) {
	tries := newRetries(r.p.OneView, "applying server profile "+r.name, r.deadline)
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

// sight is the present state of the node's hardware and of our profile for the node.
type sight struct {
	Holding
	profile *oneview.Profile // ours; nil: none
	loose   bool             // the profile is on no hardware
}

// busy reports whether the appliance has an operation in progress on the profile or its hardware, or does not show yet where the
// profile is.
func (s sight) busy() bool {
	if s.profile == nil {
		return s.Hardware.Settling()
	}
	return s.profile.InProgress || s.Hardware.Settling() || (s.Hardware.ProfileURI == "" && !s.loose)
}

// find searches for a profile of ours: on the hardware, by the URI in driver_info or of our task, and by its name. It returns an
// error of KindInUse if another user has the hardware, and one of KindNameTaken if another user's profile has the name.
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
		if err != nil && !oneview.IsNotFound(err) {
			return seen, err
		}
		if err == nil && seen.consider(profile, r.node.UUID) {
			return seen, nil
		}
	}
	named, err := r.p.OneView.ListProfiles(ctx, oneview.ProfileFilter{Name: r.name})
	if err != nil {
		return seen, err
	}
	for i := range named {
		if !seen.consider(&named[i], r.node.UUID) {
			return seen, nameTaken(r.node, &named[i])
		}
	}
	return seen, nil
}

// consider accepts a profile that the hardware does not show, if it is ours: it has the node's mark, and is on this hardware or on
// none.
func (s *sight) consider(profile *oneview.Profile, nodeID string) bool {
	loose := profile.HardwareURI == ""
	if !madeFor(profile, nodeID) || (!loose && !oneview.SameURI(profile.HardwareURI, s.Hardware.URI)) {
		return false
	}
	s.profile, s.loose = profile, loose
	return true
}

// broken reports whether a profile of ours could not be applied and must be removed: the task says so or, for the profile of an
// earlier run, the hardware.
func (r *preparation) broken(seen sight) bool {
	if r.failure != nil && oneview.SameURI(r.made, seen.profile.URI) {
		return true
	}
	return seen.Hardware.State == oneview.HardwareProfileError && madeFor(seen.profile, r.node.UUID)
}

// discard removes a profile of ours that could not be applied. If this run has created it, discard returns the cause.
func (r *preparation) discard(ctx context.Context, seen sight) error {
	if r.made == "" && seen.profile.TaskURI != "" && !oneview.SameURI(seen.profile.TaskURI, r.task) {
		r.failure = nil // the profile of an earlier run has blocked ours, and could not be applied either
	}
	if r.failure == nil && !seen.loose {
		if err := r.mayStop("the server profile that an earlier run could not apply must be removed"); err != nil {
			return err
		}
	}
	if r.discards++; r.discards > maxFailures {
		return fmt.Errorf("node %s: server profile %s cannot be applied", ironic.NodeLabel(r.node), oneview.ProfileLabel(seen.profile))
	}
	if err := r.removeProfile(ctx, seen.profile); err != nil {
		if ctx.Err() != nil || r.failure == nil {
			return err
		}
		return leftover(seen.profile, seen.Hardware, r.failure, err)
	}
	return r.failure
}

// removeProfile removes a profile, and updates the caller and driver_info.
func (r *preparation) removeProfile(ctx context.Context, profile *oneview.Profile) error {
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

// mayStop refuses to switch off a machine that may run a deployment.
func (r *preparation) mayStop(reason string) error {
	if !r.ends && !states.Parked(ironic.State(r.node.ProvisionState)) {
		return occupied(r.node, reason)
	}
	return nil
}

// record passes the profile's URI to the caller, unless it is the URI that was passed last.
func (r *preparation) record(uri string) {
	if r.recorded == uri {
		return
	}
	r.recorded = uri
	if r.o.Record != nil {
		r.o.Record(uri)
	}
}

// announce passes the profile's URI to the caller and to Ironic.
func (r *preparation) announce(ctx context.Context, uri string) error {
	uri = oneview.ProfileURI(uri)
	r.record(uri)
	node, err := r.p.announce(ctx, r.node, uri)
	if err != nil {
		return err
	}
	return r.adopt(node)
}

// take writes a profile that is applied to the hardware into the node's driver_info.
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
	if h.Ownership != UsedByIronic || !oneview.SameURI(h.Profile.URI, profile.URI) {
		if h.Ownership == UsedByOneView {
			return nil, h.inUse(r.node, r.binding)
		}
		return nil, fmt.Errorf("node %s: server profile %s, on %s: %w", ironic.NodeLabel(r.node), oneview.ProfileLabel(profile),
			oneview.HardwareLabel(h.Hardware), errShifted)
	}
	if h.Hardware.State == oneview.HardwareProfileError {
		return nil, fmt.Errorf("node %s: server profile %s is on %s, but not applied to it: its state is %q. Repair the profile in "+
			"OneView, or delete it there",
			ironic.NodeLabel(r.node), oneview.ProfileLabel(profile), oneview.HardwareLabel(h.Hardware), h.Hardware.State)
	}
	return &Applied{Profile: h.Profile, Hardware: h.Hardware, Reused: reused}, nil
}

// revision returns the necessary change of a profile that existed already.
func (r *preparation) revision(profile *oneview.Profile) revision {
	change := revision{profileURI: profile.URI}
	if r.temporary != "" {
		return change
	}
	if r.o.Name != "" || isTemporary(profile.Name, r.node.UUID) {
		change.name = r.name
	}
	if profile.TemplateURI != "" && r.o.TemplateURI != "" && !oneview.SameURI(profile.TemplateURI, r.o.TemplateURI) {
		change.templateURI, change.comply = r.o.TemplateURI, true
	}
	return change
}

// clearUp removes a profile that this run has created and cannot use, because another user was faster or the node is gone. After an
// interruption, a time-out or an error of one of the APIs it removes nothing: the next run continues.
func (r *preparation) clearUp(ctx context.Context, cause error) error {
	lost := failure.Is(cause, KindInUse) || errors.Is(cause, errShifted) || api.IsNotFound(cause)
	if r.made == "" || !lost || ctx.Err() != nil {
		return cause
	}
	made := &oneview.Profile{URI: r.made, Name: r.name}
	err := r.removeProfile(ctx, made)
	if err == nil || failure.Is(err, kindMoved) || ctx.Err() != nil {
		return cause
	}
	return leftover(made, &oneview.Hardware{URI: r.binding.HardwareURI}, cause, err)
}
