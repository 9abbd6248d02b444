package machine

import (
	"context"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// EndCreation ends a creation of this run that has succeeded, or failed with an error, which it returns. It writes into the mark that the
// run has finished, also after an interruption, and updates the record with the whole node. It returns an error of KindSuperseded instead
// if another run has taken over the creation. It does nothing if the node has no mark, or while Ironic accepts no edits. What is created
// stays good if Ironic refuses the edit, so EndCreation only logs that.
func (m *Machine) EndCreation(ctx context.Context, key notes.Mark, failed error) error {
	if notes.IsSuperseded(failed) {
		return failed
	}
	ctx, stop := rest.Outlast(ctx)
	defer stop()
	if failed != nil {
		_ = m.Refresh(ctx) // the record stays as it is if Ironic does not answer
	}
	if lost := m.superseded(); lost != nil {
		return lost
	}
	mark := notes.CreationOf(m.node.Extra, key)
	if mark == nil || mark.Run != m.site.Run.ID || failed != nil && states.InProgress(m.State()) {
		return failed
	}
	err := m.Write(ctx, m.site.Run.Ended(mark, key))
	if err == nil {
		return failed
	}
	if lost := m.CheckCreation(ctx); notes.IsSuperseded(lost) {
		return lost
	}
	m.site.Ironic.Logger().WarnContext(ctx, "could not record that the creation of a node is finished",
		append(NodeAttributes(m.node), "error", err)...)
	return failed
}

// Ended reports whether the record shows that this run has finished a creation. EndCreation has then just read the whole node.
func (m *Machine) Ended(key notes.Mark) bool {
	mark := notes.CreationOf(m.node.Extra, key)
	return mark != nil && mark.Run == m.site.Run.ID && !mark.Done.IsZero()
}

// ForgetCreation removes an unfinished mark of an earlier run from the node of a resource that Terraform has in state: an apply has
// finished what the interrupted run had begun. It only logs a failure.
func (m *Machine) ForgetCreation(ctx context.Context, key notes.Mark) {
	mark := notes.CreationOf(m.node.Extra, key)
	if !m.site.Run.IsDead(mark) || !mark.Done.IsZero() {
		return
	}
	var patch ironic.Patch
	patch.Replace(mark.Path(key), mark)
	patch.Remove("/extra/" + string(key))
	if err := m.Write(ctx, patch); err != nil {
		m.site.Ironic.Logger().WarnContext(ctx, "could not remove the mark of an interrupted creation",
			append(NodeAttributes(m.node), "error", err)...)
	}
}

// ForgetDeployment removes the mark of the deployment of an instance that leaves the state and runs on, so that no run takes the machine
// over. It only logs a failure.
func (s *Site) ForgetDeployment(ctx context.Context, node, instance string) {
	s.forget(ctx, node, notes.MarkReservation, func(mark *notes.Creation) bool { return mark.Instance == instance })
}

// ForgetHost removes the mark of the creation of a node that leaves the state and stays in Ironic, so that no run takes it for one that a
// killed run has begun. It only logs a failure.
func (s *Site) ForgetHost(ctx context.Context, node string) {
	s.forget(ctx, node, notes.MarkCreation, func(*notes.Creation) bool { return true })
}

// forget removes a mark of a node if it is the one that is meant.
func (s *Site) forget(ctx context.Context, node string, key notes.Mark, meant func(*notes.Creation) bool) {
	m, err := s.Machine(ctx, node)
	if api.IsNotFound(err) {
		return
	}
	if err == nil {
		mark := notes.CreationOf(m.node.Extra, key)
		if mark == nil || !meant(mark) {
			return
		}
		var patch ironic.Patch
		patch.Replace(mark.Path(key), mark)
		patch.Remove("/extra/" + string(key))
		err = m.Write(ctx, patch)
	}
	if err != nil {
		s.Ironic.Logger().WarnContext(ctx, "could not remove the mark of what leaves the state", "mark", key, "uuid", node, "error", err)
	}
}

// IsSuspended reports whether the provider will create an allocation again: its node has a note of it, and no other reservation.
func (s *Site) IsSuspended(ctx context.Context, allocation, node string) (bool, error) {
	if node == "" {
		return false, nil
	}
	n, err := s.Ironic.Node(ctx, node)
	if api.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	spec := notes.SuspendedAllocation(n)
	return spec != nil && spec.UUID == allocation && n.InstanceUUID == "", nil
}

// BegunReservation returns the mark of a killed run that has reserved a node; nil if there is none, or if the reservation is another.
// allocation is that of the caller; "" if it has none.
func (s *Site) BegunReservation(n *ironic.Node, allocation string) *notes.Creation {
	mark := notes.CreationOf(n.Extra, notes.MarkReservation)
	if mark == nil || !s.describes(mark, n, allocation) || !s.Run.Unfinished(mark, n.Extra) {
		return nil
	}
	return mark
}

// Pending reports whether a node at rest still has an operation to come: its creation by a run is not finished, it is reserved and not
// deployed yet, or it is held between two steps.
func Pending(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	mark := notes.CreationOf(n.Extra, notes.MarkCreation)
	return (mark != nil && mark.Done.IsZero()) || (state == nodes.Available && n.InstanceUUID != "") ||
		states.Held(state)
}

// Unmanaged reports whether a node in enroll is not reserved, claimed or managed.
func Unmanaged(n *ironic.Node) bool {
	d := notes.DiscoveryOf(n)
	return n.InstanceUUID == "" && ironic.State(n.ProvisionState) == nodes.Enroll && (d == nil || !d.Taken)
}

// Other tenants can write marks of creation, too: each user who may edit extra can. So a mark alone never makes a run take over an object.

// Tenant says for whom a creation makes an object.
type Tenant struct {
	Owner, Lessee string // as configured; "" if not
	Project       string // that Keystone has authenticated; "" without one
}

// IsForeign reports whether a field of Ironic names a project other than the configured one and the one of this run.
func (t Tenant) IsForeign(field, configured string) bool {
	return field != "" && field != configured && field != t.Project
}

// Remains is what a killed run has left of a creation.
type Remains struct {
	owner, lessee string
	instance      string // what reserves the node; "" if nothing
	reservedToo   bool   // a killed run has made that reservation, too
	recent        bool   // the creation began less than notes.MarkAge ago
}

// Obstacle returns why a creation must not be taken over, as a clause about the object; "" if it may.
func (r Remains) Obstacle(t Tenant) string {
	switch {
	case t.IsForeign(r.owner, t.Owner):
		return fmt.Sprintf("its owner is project %s", r.owner)
	case t.IsForeign(r.lessee, t.Lessee):
		return fmt.Sprintf("its lessee is project %s", r.lessee)
	case r.instance != "" && !r.reservedToo:
		return fmt.Sprintf("instance %s reserves it, which no killed run has made", r.instance)
	case !r.recent:
		return fmt.Sprintf("that was more than %d hours ago", int(notes.MarkAge.Hours()))
	}
	return ""
}

// Obstacle returns why a node, which was just read in full, a candidate of a tenant must not take over; "" if it may. mark is nil if the
// node was discovered.
func (s *Site) Obstacle(ctx context.Context, node *ironic.Node, mark *notes.Creation, tenant Tenant) (string, error) {
	tenant.Project = s.Ironic.Project()
	r := Remains{owner: node.Owner, lessee: node.Lessee, instance: node.InstanceUUID, recent: mark == nil || s.Run.IsRecent(mark)}
	if r.instance != "" {
		var err error
		if r.reservedToo, err = s.reservedByKilledRun(ctx, node, tenant); err != nil {
			return "", err
		}
	}
	return r.Obstacle(tenant), nil
}

// reservedByKilledRun reports whether a killed run has made the reservation of a node: for a deployment, or as an allocation.
func (s *Site) reservedByKilledRun(ctx context.Context, node *ironic.Node, tenant Tenant) (bool, error) {
	if node.AllocationUUID == "" {
		return s.BegunReservation(node, "") != nil, nil
	}
	a, err := s.Ironic.Allocation(ctx, node.AllocationUUID)
	if api.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !tenant.IsForeign(a.Owner, tenant.Owner) && s.Run.Unfinished(notes.CreationOf(a.Extra, notes.MarkCreation), node.Extra), nil
}

// instanceNamespace is the namespace of the instance UUIDs of this provider's own reservations.
const instanceNamespace = "6b0f2d0c-6d65-5461-8c1e-7265736572ae"

// NewReservation returns the mark of a new reservation of a node without an allocation. Its instance UUID follows from the node, the
// project of this run and the origin in the mark, so that no mark can be written for an instance UUID that another client or project has
// set.
func (s *Site) NewReservation(node string) *notes.Creation {
	mark := s.Run.Begun()
	mark.Origin = ironic.NewUUID()
	mark.Instance = instanceOf(node, s.Ironic.Project(), mark.Origin)
	return mark
}

func instanceOf(node, project, origin string) string {
	return ironic.UUID5(instanceNamespace, strings.Join([]string{node, project, origin}, " "))
}

// describes reports whether a mark describes the reservation of a node: the allocation of the caller, or a reservation that a run of this
// provider has made for the project of this run. allocation is "" if the caller has none.
func (s *Site) describes(mark *notes.Creation, n *ironic.Node, allocation string) bool {
	if n.InstanceUUID == "" || mark.Instance != n.InstanceUUID {
		return false
	}
	return mark.Instance == allocation || mark.Instance == instanceOf(n.UUID, s.Ironic.Project(), mark.Origin)
}

// IsOfOthers reports whether another project than that of this run owns or leases a node, so that its users may write notes on it. Without
// Keystone there are no projects.
func (s *Site) IsOfOthers(n *ironic.Node) bool {
	ours := Tenant{Project: s.Ironic.Project()}
	return s.cfg.Auth == api.AuthKeystone && (ours.IsForeign(n.Owner, "") || ours.IsForeign(n.Lessee, ""))
}

// AlsoBegun says, for the notice of TakenOver, that a killed run has also begun a deployment on a node; nil if it has not.
func (s *Site) AlsoBegun(n *ironic.Node) []string {
	if s.BegunReservation(n, n.InstanceUUID) == nil || notes.InQuarantineFor(n, n.InstanceUUID) {
		return nil
	}
	return []string{fmt.Sprintf("That run has also begun a deployment on node %s, which is in state %q. If this configuration has a "+
		"deployment with the same content there, the apply continues that, too.", ironic.NodeLabel(n), n.ProvisionState)}
}

// Made is a new object of Ironic, which the caller must record before it calls End.
type Made struct {
	UUID string
	Told []decide.Notice
	End  func() error // does what remains; nil: nothing
}

// TakenOver is the notice, in the plan or during the apply, that a resource takes over what a killed run has begun to create. more are
// further sentences.
func TakenOver(c *notes.Creation, what string, more ...string) decide.Notice {
	begun := "has begun to create"
	if !c.Done.IsZero() {
		begun = "has just created"
	}
	return decide.Warn(nil, "Interrupted creation is continued", fmt.Sprintf("Another run %s %s, and this state does not have it: %s. "+
		"The apply takes it over and finishes it. If that run was not yours, or its state has the resource, remove "+
		"it from one of the two configurations.", begun, what, c)+
		strings.Join(append([]string{""}, more...), " "))
}
