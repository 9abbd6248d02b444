package provision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// Reserve reserves the machine for an instance by setting instance_uuid, which is Ironic's only atomic reservation. A node that
// another instance has is a ReservedError. It does nothing if the node already has this instance.
func (m *Machine) Reserve(ctx context.Context, instance string) error {
	return m.reserve(ctx, instance, nil)
}

// ReserveNew reserves the machine for a deployment that is new in Terraform, with the mark of its creation. instance is the
// allocation that has reserved it; if it is empty, ReserveNew makes a reservation. If a killed run has reserved the machine or begun
// to deploy it, ReserveNew takes that over, after the end of an operation in progress and at most until the deadline. It then also
// returns the mark of that run. It does not take over a machine that runs something else than the deployment, nor the reservation of an
// allocation that the caller does not name.
func (m *Machine) ReserveNew(ctx context.Context, d Deployment, instance string, deadline time.Time) (reserved string, by *Creation, err error) {
	if instance != "" {
		if err := CheckReservation(m.node, instance); err != nil {
			return "", nil, err
		}
	}
	fits := func() bool { return m.state() != nodes.Active || d.DeployedWith(m.node) }
	if by, err = m.finishReservation(ctx, instance, fits, deadline); by != nil || err != nil {
		if by != nil {
			instance = by.Instance
		}
		return instance, by, err
	}
	if instance != "" {
		return instance, nil, nil
	}
	mark := m.site.newReservation(m.node.UUID)
	m.site.MadeDeployment(mark.Instance) // before others can see the reservation
	return mark.Instance, nil, m.reserve(ctx, mark.Instance, mark)
}

// reserve is Reserve with the mark of a creation, which may be nil.
func (m *Machine) reserve(ctx context.Context, instance string, mark *Creation) error {
	if m.node.InstanceUUID == instance {
		return nil
	}
	if err := Deployable(m.node, ""); err != nil {
		return err
	}
	return m.claim(ctx, instance, mark)
}

// claim sets the instance UUID of a node that has none, and writes the mark of a creation unless it is nil.
func (m *Machine) claim(ctx context.Context, instance string, mark *Creation) error {
	var patch ironic.Patch
	patch.Set("/instance_uuid", instance)
	if mark != nil {
		patch.Set("/extra/"+string(MarkReservation), mark.value())
		m.carries(MarkReservation)
	}
	err := m.Patch(ctx, patch)
	taken := ironic.IsStatus(err, http.StatusConflict, "associated with") || ironic.IsStatus(err, http.StatusConflict, "is already associated")
	if taken || ironic.IsTransient(err) || (err != nil && ctx.Err() != nil) {
		answered, stop := rest.Outlast(ctx)
		defer stop()
		if m.Refresh(answered) == nil && (taken || m.node.InstanceUUID == instance) {
			return CheckReservation(m.node, instance) // this run has it if an answer was lost
		}
	}
	return err
}

// register is what the resources of a run tell each other about deployments.
type register struct {
	inState Set[string] // the nodes whose deployments Terraform has in state, as far as it has refreshed them
	planned Set[string] // the nodes on which plans of this run create deployments
	made    Set[string] // the instance UUIDs with which this run reserves nodes for deployments

	mu   sync.Mutex
	lost map[string]*losses // by UUID of the node: what this run has noted that it loses
}

func registerOf(s *Site) *register {
	return kept(s, func(*Site) *register { return &register{lost: map[string]*losses{}} })
}

// noteLost notes what a node loses.
func (r *register) noteLost(node string, lost *losses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[node] = lost
}

// lostBy returns what this run has noted that a node loses; nil if nothing.
func (r *register) lostBy(node string) *losses {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost[node]
}

// DeploymentInState records that Terraform has the deployment of a node in state, because it has asked this run to refresh it. It reports
// whether Terraform has two of them.
func (s *Site) DeploymentInState(node string) (twice bool) {
	return !registerOf(s).inState.Add(node)
}

// PlansDeployment records that a plan of this run creates a deployment on a node, by UUID. It reports whether another plan of this run
// does so, too, and whether Terraform has a deployment of the node in state: that may be the one which the plan replaces.
func (s *Site) PlansDeployment(node string) (again, inState bool) {
	known := registerOf(s)
	return !known.planned.Add(node), known.inState.Has(node)
}

// MadeDeployment records that this run has reserved a node for a deployment, or is about to, by the instance UUID.
func (s *Site) MadeDeployment(instance string) { registerOf(s).made.Add(instance) }

// NameHolder returns an error of Deploy or ReserveNew. An error of KindReserved says whether another deployment of this run has the node.
func (s *Site) NameHolder(err error) error {
	if e := As(err, KindReserved); e != nil {
		sibling := registerOf(s).made.Has(e.Node.InstanceUUID)
		e.Advice = adviseReserved(e.Node, aboutOf[string](e, KindReserved), sibling)
	}
	return err
}

// LostDeployment returns the mark of a killed run that has begun or finished the deployment with a digest on a node, if Terraform does
// not have it in state; nil otherwise. A creation of that deployment takes it over. allocation is the one that it is for; "" if there
// is none. If it is not known yet, isKnown is false.
func (s *Site) LostDeployment(n *ironic.Node, digest, allocation string, isKnown bool) *Creation {
	if !isKnown {
		allocation = n.InstanceUUID
	}
	mark := s.begunReservation(n, allocation)
	if registerOf(s).inState.Has(n.UUID) || mark == nil || Content(n) != digest || allocation != "" && allocation != mark.Instance {
		return nil
	}
	return mark
}

// finishReservation takes over a reservation or deployment that a killed run has begun; nil if there is none. allocation is that of the
// caller; "" if it has none. fits reports whether that is what the caller wants.
func (m *Machine) finishReservation(ctx context.Context, allocation string, fits func() bool, deadline time.Time) (*Creation, error) {
	begun := func() *Creation {
		if !fits() {
			return nil
		}
		return m.site.begunReservation(m.node, allocation)
	}
	if begun() == nil {
		return nil, nil //nolint:nilnil // the usual result
	}
	if err := m.atRest(ctx, deadline); err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*Creation, error) {
		if err := m.Refresh(ctx); err != nil {
			return nil, err
		}
		if mark := begun(); mark != nil {
			return mark, nil
		}
		return nil, m.site.Run.refuseTakeOver(creationOf(m.node.Extra, MarkReservation))
	}
	mark, err := m.site.Run.finishing(ctx, m.node.UUID, MarkReservation, read, m.write)
	if errors.Is(err, errTakenOver) {
		return nil, m.Refresh(ctx)
	}
	if err == nil {
		m.carries(MarkReservation)
	}
	return mark, err
}

// KindReserved is the kind of an error which says that another instance reserves the node, or that the expected reservation is gone. About is the
// reservation that was expected; it may be empty.
const KindReserved Kind = "reserved"

func reservedError(node *ironic.Node, ours string) *Error {
	e := &Error{Kind: KindReserved, Node: node, About: ours, Fact: fmt.Sprintf("node %s is reserved by %s", ironic.NodeLabel(node), node.InstanceUUID), Advice: adviseReserved(node, ours, false)}
	if node.InstanceUUID == "" {
		e.Fact = fmt.Sprintf("node %s is not reserved by %s any more", ironic.NodeLabel(node), ours)
	}
	return e
}

// adviseReserved says what to do about another reservation. sibling: of this run.
func adviseReserved(node *ironic.Node, ours string, sibling bool) string {
	if node.InstanceUUID == "" {
		return "Another run or an operator has released the reservation. Run terraform plan again: it proposes a new one."
	}
	if id := node.AllocationUUID; id != "" && ours == "" && !Occupied(node) {
		return fmt.Sprintf("An allocation has reserved the node, and nothing is deployed on it. If the allocation is a metal_allocation of this configuration, set allocation_id "+
			"to its id, %s. Otherwise choose another node.", id)
	}
	holder := "A metal_deployment of this or another configuration, or another client, has this node."
	if sibling {
		holder = "Another metal_deployment of this apply has this node."
	}
	return fmt.Sprintf("%s A node runs only one deployment. If the other one is in this state, this command names it:\n\n  terraform state list -id=%s\n\n"+
		"Give one of the two another node. Do not import the node a second time: destroying either of the two undeploys the machine. "+
		"Only a machine that no configuration manages can be imported:\n\n  terraform import <address of the metal_deployment> %s", holder, node.UUID, node.UUID)
}

// CheckReservation returns an error of KindReserved unless the instance or allocation reserves the node.
func CheckReservation(node *ironic.Node, instance string) error {
	if node.InstanceUUID != instance {
		return reservedError(node, instance)
	}
	return nil
}
