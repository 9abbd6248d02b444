package provision

import (
	"context"
	"encoding/json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// CheckCreation reads the node and returns a SupersededError if another run has taken over its creation.
func (m *Machine) CheckCreation(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	return m.superseded()
}

// superseded compares the marks of this run that the record began with to those of the node as last seen.
func (m *Machine) superseded() error {
	for _, key := range m.marks {
		if err := m.site.Run.superseded("node "+ironic.NodeLabel(m.node), m.node.Extra, key); err != nil {
			return err
		}
	}
	return nil
}

// EndCreation ends a creation of this run that has succeeded, or failed with an error, which it returns. It writes into the mark that
// the run has finished, also after an interruption, and updates the record with the whole node. It returns a SupersededError instead
// if another run has taken over the creation. It does nothing if the node has no mark, or while Ironic accepts no edits. What is
// created stays good if Ironic refuses the edit, so EndCreation only logs that.
func (m *Machine) EndCreation(ctx context.Context, key Mark, failed error) error {
	if IsSuperseded(failed) {
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
	mark := creationOf(m.node.Extra, key)
	if mark == nil || mark.Run != m.site.Run.id || failed != nil && inProgress(m.state()) {
		return failed
	}
	err := m.write(ctx, m.site.Run.ended(mark, key))
	if err == nil {
		return failed
	}
	if lost := m.CheckCreation(ctx); IsSuperseded(lost) {
		return lost
	}
	m.site.Logger().WarnContext(ctx, "could not record that the creation of a node is finished", append(nodeAttributes(m.node), "error", err)...)
	return failed
}

// Ended reports whether the record shows that this run has finished a creation. EndCreation has then just read the whole node.
func (m *Machine) Ended(key Mark) bool {
	mark := creationOf(m.node.Extra, key)
	return mark != nil && mark.Run == m.site.Run.id && !mark.Done.IsZero()
}

// guarded returns a patch that Ironic refuses if another run has taken over a creation of this run.
func (m *Machine) guarded(patch ironic.Patch) ironic.Patch {
	var guards ironic.Patch
	for _, key := range m.marks {
		if mark := creationOf(m.node.Extra, key); mark != nil && mark.Run == m.site.Run.id && mark.Done.IsZero() {
			guards.Replace(mark.path(key), mark)
		}
	}
	return append(guards, patch...)
}

// ForgetCreation removes an unfinished mark of an earlier run from the node of a resource that Terraform has in state: an apply has
// finished what the interrupted run had begun. It only logs a failure.
func (m *Machine) ForgetCreation(ctx context.Context, key Mark) {
	mark := creationOf(m.node.Extra, key)
	if !m.site.Run.isDead(mark) || !mark.Done.IsZero() {
		return
	}
	var patch ironic.Patch
	patch.Replace(mark.path(key), mark)
	patch.Remove("/extra/" + string(key))
	if err := m.write(ctx, patch); err != nil {
		m.site.Logger().WarnContext(ctx, "could not remove the mark of an interrupted creation", append(nodeAttributes(m.node), "error", err)...)
	}
}

// ForgetDeployment removes the mark of the deployment of an instance that leaves the state and runs on, so that no run takes the machine over. It only
// logs a failure.
func (s *Site) ForgetDeployment(ctx context.Context, node, instance string) {
	s.forget(ctx, node, MarkReservation, func(mark *Creation) bool { return mark.Instance == instance })
}

// ForgetHost removes the mark of the creation of a node that leaves the state and stays in Ironic, so that no run takes it for one that a killed run has
// begun. It only logs a failure.
func (s *Site) ForgetHost(ctx context.Context, node string) {
	s.forget(ctx, node, MarkCreation, func(*Creation) bool { return true })
}

// forget removes a mark of a node if it is the one that is meant.
func (s *Site) forget(ctx context.Context, node string, key Mark, meant func(*Creation) bool) {
	m, err := s.Machine(ctx, node)
	if ironic.IsNotFound(err) {
		return
	}
	if err == nil {
		mark := creationOf(m.node.Extra, key)
		if mark == nil || !meant(mark) {
			return
		}
		var patch ironic.Patch
		patch.Replace(mark.path(key), mark)
		patch.Remove("/extra/" + string(key))
		err = m.write(ctx, patch)
	}
	if err != nil {
		s.Logger().WarnContext(ctx, "could not remove the mark of what leaves the state", "mark", key, "uuid", node, "error", err)
	}
}

// SuspendedAllocation returns the allocation that must be created again after the node is undeployed; nil if there is none. Once the node
// runs something without a reservation, the note does not count: another client has deployed the node since.
func SuspendedAllocation(n *ironic.Node) *ironic.AllocationSpec {
	text, err := json.Marshal(n.Extra[keyAllocation])
	if err != nil || runsUnreserved(n) {
		return nil
	}
	var spec ironic.AllocationSpec
	if json.Unmarshal(text, &spec) != nil || spec.UUID == "" {
		return nil
	}
	spec.CandidateNodes = []string{n.UUID} // another client may have written the note
	delete(spec.Extra, string(MarkCreation))
	return &spec
}

// IsSuspended reports whether the provider will create an allocation again: its node has a note of it, and no other reservation.
func (s *Site) IsSuspended(ctx context.Context, allocation, node string) (bool, error) {
	if node == "" {
		return false, nil
	}
	n, err := s.Node(ctx, node)
	if ironic.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	spec := SuspendedAllocation(n)
	return spec != nil && spec.UUID == allocation && n.InstanceUUID == "", nil
}

// begunReservation returns the mark of a killed run that has reserved a node; nil if there is none, or if the reservation is another.
// allocation is that of the caller; "" if it has none.
func (s *Site) begunReservation(n *ironic.Node, allocation string) *Creation {
	mark := creationOf(n.Extra, MarkReservation)
	if mark == nil || !s.describes(mark, n, allocation) || !s.Run.unfinished(mark, n.Extra) {
		return nil
	}
	return mark
}
