package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// deployable returns the error that prevents a new deployment on a node, an error of KindReserved or an error of KindRefused; nil if there
// is none. instance is the reservation of the caller, or "" if it has none yet.
func deployable(node *ironic.Node, instance string) error {
	if err := machine.CheckReservation(node, instance); err != nil {
		return err
	}
	if ironic.State(node.ProvisionState) != nodes.Available {
		return notDeployable(node)
	}
	if node.Maintenance {
		return machine.RefusedFor(node, "it is in maintenance"+inBrackets(node.MaintenanceReason)+". Take it out of maintenance first")
	}
	return nil
}

// inBrackets returns " (text)", or "" for an empty text.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func notDeployable(node *ironic.Node) error {
	m := states.NextMove(states.GoalDeployed, ironic.State(node.ProvisionState), false)
	if m.Kind == states.Wait {
		m.Reason = states.ReasonBusy
	}
	m.Reason = cmp.Or(m.Reason, states.ReasonDeployed)
	return machine.Refused(node, m.Reason)
}

// Reserve reserves the machine for an instance by setting instance_uuid, which is Ironic's only atomic reservation. A node that
// another instance has is an error of KindReserved. It does nothing if the node already has this instance.
func Reserve(ctx context.Context, m *machine.Machine, instance string) error {
	return reserve(ctx, m, instance, nil)
}

// ReserveNew reserves the machine for a deployment that is new in Terraform, with the mark of its creation. instance is the
// allocation that has reserved it; if it is empty, ReserveNew makes a reservation. If a killed run has reserved the machine or begun
// to deploy it, ReserveNew takes that over, after the end of an operation in progress and at most until the deadline. It then also
// returns the mark of that run. It does not take over a machine that runs something else than the deployment, nor the reservation of an
// allocation that the caller does not name.
func ReserveNew(
	ctx context.Context, m *machine.Machine, d Deployment, instance string, deadline time.Time,
) (reserved string, by *notes.Creation, err error) {
	if instance != "" {
		if err := machine.CheckReservation(m.Node(), instance); err != nil {
			return "", nil, err
		}
	}
	fits := func() bool { return m.State() != nodes.Active || d.DeployedWith(m.Node()) }
	if by, err = finishReservation(ctx, m, instance, fits, deadline); by != nil || err != nil {
		if by != nil {
			instance = by.Instance
		}
		return instance, by, err
	}
	if instance != "" {
		return instance, nil, nil
	}
	mark := m.Site().NewReservation(m.Node().UUID)
	MadeDeployment(m.Site(), mark.Instance) // before others can see the reservation
	return mark.Instance, nil, reserve(ctx, m, mark.Instance, mark)
}

// reserve is Reserve with the mark of a creation, which may be nil.
func reserve(ctx context.Context, m *machine.Machine, instance string, mark *notes.Creation) error {
	if m.Node().InstanceUUID == instance {
		return nil
	}
	if err := deployable(m.Node(), ""); err != nil {
		return err
	}
	return Claim(ctx, m, instance, mark)
}

// Claim sets the instance UUID of a node that has none, and writes the mark of a creation unless it is nil.
func Claim(ctx context.Context, m *machine.Machine, instance string, mark *notes.Creation) error {
	var patch ironic.Patch
	patch.Set("/instance_uuid", instance)
	if mark != nil {
		patch.Set("/extra/"+string(notes.MarkReservation), mark.Value())
		m.Carries(notes.MarkReservation)
	}
	err := m.Patch(ctx, patch)
	taken := api.IsStatus(err, http.StatusConflict, "associated with") || api.IsStatus(err, http.StatusConflict, "is already associated")
	if taken || api.IsTransient(err) || (err != nil && ctx.Err() != nil) {
		answered, stop := rest.Outlast(ctx)
		defer stop()
		if m.Refresh(answered) == nil && (taken || m.Node().InstanceUUID == instance) {
			return machine.CheckReservation(m.Node(), instance) // this run has it if an answer was lost
		}
	}
	return err
}

// Register is what the resources of a run tell each other about deployments.
type Register struct {
	inState notes.Set[string] // the nodes whose deployments Terraform has in state, as far as it has refreshed them
	left    notes.Set[string] // the nodes whose deployments have left the state in this run: they run something else
	planned notes.Set[string] // the nodes on which plans of this run create deployments
	ended   notes.Set[string] // the nodes whose deployments plans of this run destroy
	made    notes.Set[string] // the instance UUIDs with which this run reserves nodes for deployments
	proven  notes.Set[string] // the images, by ImageSource, that this run has deployed on a machine

	mu   sync.Mutex
	lost map[string]*Losses // by UUID of the node: what this run has noted that it loses
}

// registerOf returns what the resources of a run tell each other about the deployments of a site.
func registerOf(site *machine.Site) *Register {
	return machine.Kept(site, func(*machine.Site) *Register { return &Register{lost: map[string]*Losses{}} })
}

// NoteLost notes what a node loses.
func (r *Register) NoteLost(node string, lost *Losses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[node] = lost
}

// hasNoted reports whether this run has noted what a node loses when it is deployed again, which may be nothing.
func (r *Register) hasNoted(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, noted := r.lost[node]
	return noted
}

// lostBy returns what this run has noted that a node loses; nil if nothing.
func (r *Register) lostBy(node string) *Losses {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost[node]
}

// DeploymentInState records that Terraform has the deployment of a node in state, because it has asked this run to refresh it. It reports
// whether Terraform has two of them.
func DeploymentInState(site *machine.Site, node string) (twice bool) {
	return !registerOf(site).inState.Add(node)
}

// Leaves records that the deployment of a node leaves the state, and says that and why.
func Leaves(site *machine.Site, node *ironic.Node, reason string) decide.Notice {
	registerOf(site).inState.Remove(node.UUID)
	registerOf(site).left.Add(node.UUID)
	return Gone(ironic.NodeLabel(node), reason)
}

// plansDeployment records that a plan of this run creates a deployment on a node, by UUID. It reports whether another plan of this run
// does so, too, and whether Terraform has a deployment of the node in state: that may be the one which the plan replaces.
func plansDeployment(site *machine.Site, node string) (again, inState bool) {
	known := registerOf(site)
	return !known.planned.Add(node), known.inState.Has(node)
}

// MadeDeployment records that this run has reserved a node for a deployment, or is about to, by the instance UUID.
func MadeDeployment(site *machine.Site, instance string) { registerOf(site).made.Add(instance) }

// NameHolder returns an error of Deploy or ReserveNew. An error of KindReserved says whether another deployment of this run has the node.
func NameHolder(site *machine.Site, err error) error {
	if e := failure.As(err, machine.KindReserved); e != nil {
		sibling := registerOf(site).made.Has(e.Node.InstanceUUID)
		e.Advice = machine.AdviseReserved(e.Node, failure.AboutOf[string](e, machine.KindReserved), sibling)
	}
	return err
}

// MeetsDeployment returns the error of a creation that has found something deployed on its node. It says first why a replacement finds
// that.
func MeetsDeployment(node *ironic.Node, err error) error {
	if !failure.Is(err, machine.KindRefused) || !states.IsOccupied(node) {
		return err
	}
	return &failure.Error{
		Kind: machine.KindRefused, Node: node, Err: err,
		Fact: fmt.Sprintf("node %s is in state %q: something is deployed on it, and nothing was done", ironic.NodeLabel(node),
			node.ProvisionState),
		Advice: failure.AdviseCreateFirst("a deployment on the same node") + "\n\nThe provider deploys no machine on which something " +
			"else runs. If it is not this deployment that runs there, name another node.",
	}
}

// LostDeployment returns the mark of a killed run that has begun or finished the deployment with a digest on a node, if Terraform does
// not have it in state; nil otherwise. A creation of that deployment takes it over. allocation is the one that it is for; "" if there
// is none. If it is not known yet, isKnown is false.
func LostDeployment(site *machine.Site, n *ironic.Node, digest, allocation string, isKnown bool) *notes.Creation {
	if !isKnown {
		allocation = n.InstanceUUID
	}
	mark := site.BegunReservation(n, allocation)
	if registerOf(site).inState.Has(n.UUID) || mark == nil || runningContent(n) != digest || allocation != "" &&
		allocation != mark.Instance {
		return nil
	}
	return mark
}

// finishReservation takes over a reservation or deployment that a killed run has begun; nil if there is none. allocation is that of the
// caller; "" if it has none. fits reports whether that is what the caller wants.
func finishReservation(ctx context.Context, m *machine.Machine, allocation string, fits func() bool,
	deadline time.Time,
) (*notes.Creation, error) {
	begun := func() *notes.Creation {
		if !fits() {
			return nil
		}
		return m.Site().BegunReservation(m.Node(), allocation)
	}
	if begun() == nil {
		return nil, nil //nolint:nilnil // the usual result
	}
	if err := m.AtRest(ctx, deadline); err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*notes.Creation, error) {
		if err := m.Refresh(ctx); err != nil {
			return nil, err
		}
		if mark := begun(); mark != nil {
			return mark, nil
		}
		return nil, m.Site().Run.RefuseTakeOver(notes.CreationOf(m.Node().Extra, notes.MarkReservation))
	}
	mark, err := m.Site().Run.Finishing(ctx, m.Node().UUID, notes.MarkReservation, read, m.Write)
	if errors.Is(err, notes.ErrTakenOver) {
		return nil, m.Refresh(ctx)
	}
	if err == nil {
		m.Carries(notes.MarkReservation)
	}
	return mark, err
}
