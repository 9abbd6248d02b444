package provision

import (
	"context"
	"errors"
	"net/http"
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
		m.marks = append(m.marks, MarkReservation)
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

// DeploymentInState records that Terraform has the deployment of a node in state, because it has asked this run to refresh it. It reports
// whether Terraform has two of them.
func (s *Site) DeploymentInState(node string) (twice bool) {
	_, twice = s.deployments.Swap(node, true)
	return twice
}

// PlansDeployment records that a plan of this run creates a deployment on a node, by UUID. It reports whether another plan of this run
// does so, too, and whether Terraform has a deployment of the node in state: that may be the one which the plan replaces.
func (s *Site) PlansDeployment(node string) (again, inState bool) {
	_, again = s.planned.Swap(node, true)
	_, inState = s.deployments.Load(node)
	return again, inState
}

// MadeDeployment records that this run has reserved a node for a deployment, or is about to, by the instance UUID.
func (s *Site) MadeDeployment(instance string) { s.made.Store(instance, true) }

// NameHolder returns an error of Deploy or ReserveNew. A ReservedError says whether another deployment of this run has the node.
func (s *Site) NameHolder(err error) error {
	var reserved *ReservedError
	if errors.As(err, &reserved) {
		_, reserved.Sibling = s.made.Load(reserved.Node.InstanceUUID)
	}
	return err
}

// hasDeploymentInState reports whether Terraform has the deployment of a node in state, as far as it has refreshed that.
func (s *Site) hasDeploymentInState(node string) bool {
	_, has := s.deployments.Load(node)
	return has
}

// LostDeployment returns the mark of a killed run that has begun or finished the deployment with a digest on a node, if Terraform does
// not have it in state; nil otherwise. A creation of that deployment takes it over. allocation is the one that it is for; "" if there
// is none. If it is not known yet, isKnown is false.
func (s *Site) LostDeployment(n *ironic.Node, digest, allocation string, isKnown bool) *Creation {
	if !isKnown {
		allocation = n.InstanceUUID
	}
	mark := s.begunReservation(n, allocation)
	if s.hasDeploymentInState(n.UUID) || mark == nil || Content(n) != digest || allocation != "" && allocation != mark.Instance {
		return nil
	}
	return mark
}

// begunReservation returns the mark of a killed run that has reserved a node; nil if there is none, or if the reservation is another.
// allocation is that of the caller; "" if it has none.
func (s *Site) begunReservation(n *ironic.Node, allocation string) *Creation {
	mark := creationOf(n.Extra, MarkReservation)
	if mark == nil || !s.describes(mark, n, allocation) || !s.unfinished(mark, n.Extra) {
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
		return nil, m.site.refuseTakeOver(creationOf(m.node.Extra, MarkReservation))
	}
	mark, err := m.site.finishing(ctx, m.node.UUID, MarkReservation, read, m.write)
	if errors.Is(err, errTakenOver) {
		return nil, m.Refresh(ctx)
	}
	if err == nil {
		m.marks = append(m.marks, MarkReservation)
	}
	return mark, err
}

// CheckReservation returns a ReservedError unless the instance or allocation reserves the node.
func CheckReservation(node *ironic.Node, instance string) error {
	if node.InstanceUUID != instance {
		return &ReservedError{Node: node, Ours: instance}
	}
	return nil
}
