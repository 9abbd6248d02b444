package provision

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Undeploy ends the instance on the machine and waits until the node is clean again. If an allocation is named, Undeploy creates
// it again as soon as the node is free, with the same UUID, name, class and traits, and this node as its only candidate; lost says
// why that failed. Undeploy does nothing to a node that another instance has reserved in the meantime. The caller must have just
// read the node.
func (m *Machine) Undeploy(ctx context.Context, instance, allocation string, timeout time.Duration) (lost string, err error) {
	if allocation != "" {
		done, waited, err := m.site.Hold(ctx, allocation)
		if err != nil {
			return "", err
		}
		defer done()
		if waited {
			if err := m.Refresh(ctx); err != nil {
				return "", err
			}
		}
	}
	if ByAgent(m.node) && occupied(m.state()) {
		return "", RefusedFor(m.node, "Ironic has no BMC credentials of it, and undeploying needs them. Give its metal_host a bmc first")
	}
	if !deployedAgain(m.node, instance) || !losesReservation(m.node) {
		if err := m.cleanAgain(ctx); err != nil {
			return "", err
		}
	}
	if NeedsCleaning(m.node, instance) && m.node.InstanceUUID == instance {
		if err := m.releaseReservation(ctx, allocation); err != nil {
			return "", err
		}
	}
	if deployedAgain(m.node, instance) && losesReservation(m.node) {
		if err := m.cleanUndeployed(ctx, instance, timeout); err != nil {
			return "", err
		}
	}
	lost, err = m.undeploy(ctx, instance, allocation, timeout)
	if err == nil {
		err = m.forgetBoot(ctx, allocation)
	}
	return lost, err
}

// releaseReservation releases the reservation of a node without a deployment, so that the node can be cleaned. It records an allocation first,
// so that it can be created again.
func (m *Machine) releaseReservation(ctx context.Context, allocation string) error {
	patch := unprepare(m.node)
	reserved := m.node.AllocationUUID
	if reserved == "" {
		patch.Remove("/instance_uuid")
	} else if allocation != "" {
		if _, err := m.suspend(ctx, allocation); err != nil {
			return err
		}
	}
	err := m.Patch(ctx, patch)
	if err == nil && reserved != "" {
		err = m.site.DeleteAllocation(ctx, reserved)
	}
	if err != nil {
		return err
	}
	return m.Refresh(ctx)
}

// unprepare returns the edits that remove from a node what prepare has written.
func unprepare(node *ironic.Node) (patch ironic.Patch) {
	if _, exists := node.InstanceInfo[keyMarker]; !exists {
		return nil
	}
	for _, key := range append(markerOf(node).Keys, keyMarker) {
		if _, exists := node.InstanceInfo[key]; exists && key != keyTraits { // the allocation may have set the traits
			patch.Remove("/instance_info/" + key)
		}
	}
	return patch
}

// cleanUndeployed cleans an unreserved node that an interrupted run has undeployed without cleaning, to deploy it again.
func (m *Machine) cleanUndeployed(ctx context.Context, instance string, timeout time.Duration) error {
	err := m.walk(ctx, GoalUndeployed, instance, ironic.Order{}, timeout)
	if err == nil {
		err = m.cleanAgain(ctx)
	}
	for _, goal := range []Goal{GoalManageable, GoalAvailable} {
		if err == nil && m.node.InstanceUUID == "" && !m.node.Retired {
			err = m.Reach(ctx, goal, timeout)
		}
	}
	return err
}

// undeploy is Undeploy for a node that was just read and that may be deployed again at once.
func (m *Machine) undeploy(ctx context.Context, instance, allocation string, timeout time.Duration) (lost string, err error) {
	suspended := SuspendedAllocation(m.node)
	if suspended != nil && suspended.UUID != allocation {
		suspended = nil
	}
	ours := m.node.InstanceUUID == instance && instance != "" || m.node.InstanceUUID == "" && suspended != nil
	if !ours && !undeployUnfinished(m.node) {
		return "", nil
	}
	if m.state() == nodes.Available {
		return m.release(ctx, instance, suspended, timeout)
	}
	if allocation != "" && m.node.InstanceUUID == allocation {
		now, err := m.suspend(ctx, allocation)
		if err != nil {
			return "", err
		}
		if now != nil { // otherwise Ironic has ended the undeploy since, and an earlier run has noted the allocation
			suspended = now
		}
	}
	goal := GoalUndeployed
	// The instance is gone but its data may remain: clean again if cleaning fails or has failed, or if a run was killed before that.
	left := inCleaning(m.node) || m.state() == nodes.Manageable && m.node.InstanceUUID == "" && suspended != nil
	if left && !m.node.Retired {
		goal = GoalAvailable
	}
	if err := m.walk(ctx, goal, instance, ironic.Order{}, timeout); err != nil {
		return "", err
	}
	return m.release(ctx, instance, suspended, timeout)
}

// suspend records on the node which allocation must be created again, so that a later run can do it if this run is killed. Ironic
// accepts no write while it deploys the node; then only the returned value remains.
func (m *Machine) suspend(ctx context.Context, allocation string) (*ironic.AllocationSpec, error) {
	m.site.ForgetAllocation(allocation) // another client may have edited it since it was listed
	a, err := m.site.AllocationForRefresh(ctx, allocation)
	if ironic.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the reservation is not an allocation
	}
	if err != nil {
		return nil, err
	}
	spec := &ironic.AllocationSpec{
		UUID: a.UUID, Name: a.Name, ResourceClass: a.ResourceClass, Traits: a.Traits, Owner: a.Owner, Extra: maps.Clone(a.Extra),
		CandidateNodes: []string{m.node.UUID},
	}
	delete(spec.Extra, string(MarkCreation)) // the allocation is in state
	if nextMove(GoalDeployed, m.state(), false).kind == wait {
		return spec, nil
	}
	var patch ironic.Patch
	patch.Set("/extra/"+keyAllocation, spec)
	return spec, m.Patch(ctx, patch)
}

// release ends the reservation of a node without a deployment: it removes the provider's own reservation, or creates the suspended
// allocation again after an undeploy.
func (m *Machine) release(ctx context.Context, instance string, suspended *ironic.AllocationSpec, timeout time.Duration) (lost string, err error) {
	node := m.node
	// Otherwise another instance has the node and what is written on it.
	free := node.InstanceUUID == instance || (node.InstanceUUID == "" && !Occupied(node))
	patch := unprepare(node) // not empty if the node was prepared and never deployed
	if node.AllocationUUID == "" && node.InstanceUUID == instance && instance != "" {
		patch.Remove("/instance_uuid")
	}
	if suspended != nil {
		if suspended.ResourceClass == "" {
			suspended.ResourceClass = node.ResourceClass // a backfill may have no class
		}
		err := m.site.restore(ctx, *suspended, timeout)
		if err != nil && !isFinal(err) {
			return "", fmt.Errorf("create allocation %s again: %w", suspended.UUID, err)
		}
		if err != nil {
			lost = err.Error()
		}
	}
	if _, exists := node.Extra[keyAllocation]; exists && suspended != nil {
		patch.Remove("/extra/" + keyAllocation)
	}
	if mark := creationOf(node.Extra, MarkReservation); mark != nil && mark.Instance == instance {
		patch.Remove("/extra/" + string(MarkReservation))
	}
	if !free {
		patch = slices.DeleteFunc(patch, func(op nodes.UpdateOperation) bool { return op.Path != "/extra/"+keyAllocation })
		if err := m.Patch(ctx, patch); err != nil {
			m.site.Logger().DebugContext(ctx, "could not remove the note of a lost allocation from a node that another instance has", append(nodeAttributes(node), "error", err)...)
		}
		return lost, nil
	}
	return lost, m.Patch(ctx, patch)
}

// isFinal reports whether an allocation cannot be created again: its node is taken, another project has taken its name, or Ironic refuses what the
// note says, which any client may have written. The node is free then, and must not stay blocked for that.
func isFinal(err error) bool {
	return Is(err, KindNoMatch) || slices.ContainsFunc([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict}, func(status int) bool {
		return ironic.IsStatus(err, status, "") && !ironic.IsTransient(err)
	})
}

// restore creates an allocation again. It keeps one that an earlier run has created.
func (s *Site) restore(ctx context.Context, spec ironic.AllocationSpec, timeout time.Duration) error {
	made, err := CreateAllocation(ctx, s.Client, spec)
	if ironic.IsStatus(err, http.StatusConflict, "") {
		var found error
		if made, found = s.Allocation(ctx, spec.UUID); found == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	_, err = s.AwaitAllocation(ctx, Request{AllocationSpec: spec}, made, timeout)
	return err
}
