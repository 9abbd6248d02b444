package deploy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// NeedsCredentials says why a machine without a BMC cannot be undeployed, and what to do.
const NeedsCredentials = "Ironic has no BMC credentials of it, and undeploying needs them. Give its metal_host a bmc first"

// Undeploy ends the instance on the machine and waits until the node is clean again. If an allocation is named, Undeploy creates
// it again as soon as the node is free, with the same UUID, name, class and traits, and this node as its only candidate; lost says
// why that failed. Undeploy does nothing to a node that another instance has reserved in the meantime. The caller must have just
// read the node.
func Undeploy(ctx context.Context, m *machine.Machine, instanceID, allocation string, timeout time.Duration) (lost string, err error) {
	if allocation != "" {
		done, waited, err := m.Site().Hold(ctx, allocation)
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
	if machine.ByAgent(m.Node()) && states.Occupied(m.State()) {
		return "", machine.RefusedFor(m.Node(), NeedsCredentials)
	}
	if !deployedAgain(m.Node(), instanceID) || !states.LosesReservation(m.Node()) {
		if err := CleanAgain(ctx, m); err != nil {
			return "", err
		}
	}
	if NeedsCleaning(m.Node(), instanceID) && m.Node().InstanceUUID == instanceID {
		if err := releaseReservation(ctx, m, allocation); err != nil {
			return "", err
		}
	}
	if deployedAgain(m.Node(), instanceID) && states.LosesReservation(m.Node()) {
		if err := cleanUndeployed(ctx, m, instanceID, timeout); err != nil {
			return "", err
		}
	}
	lost, err = undeploy(ctx, m, instanceID, allocation, timeout)
	if err == nil {
		err = forgetBoot(ctx, m, allocation)
	}
	return lost, err
}

// TakeBack ends the reservation of a new deployment that Ironic never got, because a server before it takes no request of that size, or
// because it would have been in vain. It reports whether nothing of the deployment is left, also no VIF.
func TakeBack(ctx context.Context, m *machine.Machine, instance string, vifs []VIF, failed error, timeout time.Duration) bool {
	refused := api.IsStatus(failed, http.StatusRequestEntityTooLarge, "") || failure.Is(failed, machine.KindInVain)
	if !refused || m.State() != nodes.Available || NeedsCleaning(m.Node(), instance) {
		return false
	}
	m.Gets("") // to end the reservation is not in vain
	if DisconnectVIFs(ctx, m, instance, vifs) != nil {
		return false
	}
	_, err := Undeploy(ctx, m, instance, "", timeout)
	return err == nil
}

// LostAllocation says that Undeploy has lost the allocation, and why.
func LostAllocation(node, allocation, why string) decide.Notice {
	return decide.Warn(nil, "Allocation is not kept", fmt.Sprintf("Node %s was undeployed, but allocation %s could not be created again: "+
		"%s. The next plan shows it as gone.", node, allocation, why))
}

// releaseReservation releases the reservation of a node without a deployment, so that the node can be cleaned. It records an allocation
// first, so that it can be created again.
func releaseReservation(ctx context.Context, m *machine.Machine, allocation string) error {
	patch := unprepare(m.Node())
	reserved := m.Node().AllocationUUID
	if reserved == "" {
		patch.Remove("/instance_uuid")
	} else if allocation != "" {
		if _, err := suspend(ctx, m, allocation); err != nil {
			return err
		}
	}
	err := m.Patch(ctx, patch)
	if err == nil && reserved != "" {
		err = m.Site().Ironic.DeleteAllocation(ctx, reserved)
	}
	if err != nil {
		return err
	}
	return m.Refresh(ctx)
}

// unprepare returns the edits that remove from a node what prepare has written.
func unprepare(node *ironic.Node) (patch ironic.Patch) {
	if _, exists := node.InstanceInfo[notes.KeyMarker]; !exists {
		return nil
	}
	for _, key := range append(InstanceMarkerOf(node).Keys, notes.KeyMarker) {
		if _, exists := node.InstanceInfo[key]; exists {
			patch.Remove("/instance_info/" + key)
		}
	}
	return patch
}

// cleanUndeployed cleans an unreserved node that an interrupted run has undeployed without cleaning, to deploy it again.
func cleanUndeployed(ctx context.Context, m *machine.Machine, instanceID string, timeout time.Duration) error {
	err := m.Walk(ctx, states.GoalUndeployed, instanceID, ironic.Order{}, timeout)
	if err == nil {
		err = CleanAgain(ctx, m)
	}
	for _, goal := range []states.Goal{states.GoalManageable, states.GoalAvailable} {
		if err == nil && m.Node().InstanceUUID == "" && !m.Node().Retired {
			err = m.Reach(ctx, goal, timeout)
		}
	}
	return err
}

// undeploy is Undeploy for a node that was just read and that may be deployed again at once.
func undeploy(ctx context.Context, m *machine.Machine, instance, allocation string, timeout time.Duration) (lost string, err error) {
	defer m.NoteWork(ctx)
	suspended := notes.SuspendedAllocation(m.Node())
	if suspended != nil && suspended.UUID != allocation {
		suspended = nil
	}
	ours := m.Node().InstanceUUID == instance && instance != "" || m.Node().InstanceUUID == "" && suspended != nil
	if !ours && !states.UndeployUnfinished(m.Node()) {
		return "", nil
	}
	if m.State() == nodes.Available {
		return release(ctx, m, instance, suspended, timeout)
	}
	if allocation != "" && m.Node().InstanceUUID == allocation {
		now, err := suspend(ctx, m, allocation)
		if err != nil {
			return "", err
		}
		if now != nil { // otherwise Ironic has ended the undeploy since, and an earlier run has noted the allocation
			suspended = now
		}
	}
	goal := states.GoalUndeployed
	// The instance is gone but its data may remain: clean again if cleaning fails or has failed, or if a run was killed before that.
	left := states.InCleaning(m.Node()) || m.State() == nodes.Manageable && m.Node().InstanceUUID == "" && suspended != nil
	if left && !m.Node().Retired {
		goal = states.GoalAvailable
	}
	if err := m.Walk(ctx, goal, instance, ironic.Order{}, timeout); err != nil {
		return "", err
	}
	return release(ctx, m, instance, suspended, timeout)
}

// suspend records on the node which allocation must be created again, so that a later run can do it if this run is killed. Ironic
// accepts no write while it deploys the node; then only the returned value remains.
func suspend(ctx context.Context, m *machine.Machine, allocation string) (*ironic.AllocationSpec, error) {
	m.Site().Ironic.ForgetAllocation(allocation) // another client may have edited it since it was listed
	a, err := m.Site().Ironic.AllocationForRefresh(ctx, allocation)
	if api.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the reservation is not an allocation
	}
	if err != nil {
		return nil, err
	}
	spec := &ironic.AllocationSpec{
		UUID: a.UUID, Name: a.Name, ResourceClass: a.ResourceClass, Traits: a.Traits, Owner: a.Owner, Extra: maps.Clone(a.Extra),
		CandidateNodes: []string{m.Node().UUID},
	}
	delete(spec.Extra, string(notes.MarkCreation)) // the allocation is in state
	notes.KeepCreated(spec, a.CreatedAt)
	if states.NextMove(states.GoalDeployed, m.State(), false).Kind == states.Wait {
		return spec, nil
	}
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyAllocation, spec)
	return spec, m.Patch(ctx, patch)
}

// release ends the reservation of a node without a deployment: it removes the provider's own reservation, or creates the suspended
// allocation again after an undeploy.
func release(ctx context.Context, m *machine.Machine, instance string, suspended *ironic.AllocationSpec,
	timeout time.Duration,
) (lost string, err error) {
	node := m.Node()
	// Otherwise another instance has the node and what is written on it.
	free := node.InstanceUUID == instance || (node.InstanceUUID == "" && !states.IsOccupied(node))
	patch := unprepare(node) // not empty if the node was prepared and never deployed
	if node.AllocationUUID != "" && slices.Contains(InstanceMarkerOf(node).Keys, KeyTraits) {
		a, err := m.Site().Ironic.Allocation(ctx, node.AllocationUUID)
		if err != nil && !api.IsNotFound(err) {
			return "", err
		}
		if err == nil {
			patch = slices.DeleteFunc(patch, func(op nodes.UpdateOperation) bool { return op.Path == "/instance_info/"+KeyTraits })
			patch.Set("/instance_info/"+KeyTraits, a.Traits) // as the allocation has set them
		}
	}
	// Without its instance UUID, Ironic deletes the allocation. Another run may have created a suspended one again, which polls do not
	// show.
	if node.AllocationUUID == "" && node.InstanceUUID == instance && instance != "" && (suspended == nil || suspended.UUID != instance) {
		patch.Remove("/instance_uuid")
	}
	if suspended != nil {
		if suspended.ResourceClass == "" {
			suspended.ResourceClass = node.ResourceClass // a backfill may have no class
		}
		err := restore(ctx, m.Site(), *suspended, timeout)
		if err != nil && !isFinal(err) {
			return "", fmt.Errorf("create allocation %s again: %w", suspended.UUID, err)
		}
		if err != nil {
			lost = err.Error()
		}
	}
	if _, exists := node.Extra[notes.KeyAllocation]; exists && suspended != nil {
		patch.Remove("/extra/" + notes.KeyAllocation)
	}
	if _, exists := node.Extra[notes.KeyReady]; exists {
		patch.Remove("/extra/" + notes.KeyReady)
	}
	if mark := notes.CreationOf(node.Extra, notes.MarkReservation); mark != nil && mark.Instance == instance {
		patch.Remove("/extra/" + string(notes.MarkReservation))
	}
	if !free {
		patch = slices.DeleteFunc(patch, func(op nodes.UpdateOperation) bool { return op.Path != "/extra/"+notes.KeyAllocation })
		if err := m.Patch(ctx, patch); err != nil {
			m.Site().Ironic.Logger().DebugContext(ctx, "could not remove the note of a lost allocation from a node that another "+
				"instance has", append(machine.NodeAttributes(node), "error", err)...)
		}
		return lost, nil
	}
	return lost, m.Patch(ctx, patch)
}

// isFinal reports whether an allocation cannot be created again: its node is taken, another project has taken its name, or Ironic refuses
// what the note says, which any client may have written. The node is free then, and must not stay blocked for that.
func isFinal(err error) bool {
	return failure.Is(err, allocate.KindNoMatch) ||
		slices.ContainsFunc([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict}, func(status int) bool {
			return api.IsStatus(err, status, "") && !api.IsTransient(err)
		})
}

// restore creates an allocation again. It keeps one that an earlier run has created.
func restore(ctx context.Context, site *machine.Site, spec ironic.AllocationSpec, timeout time.Duration) error {
	made, err := failure.CreateAllocation(ctx, site.Ironic, spec)
	if api.IsStatus(err, http.StatusConflict, "") {
		var found error
		if made, found = site.Ironic.Allocation(ctx, spec.UUID); found == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	_, err = allocate.AwaitAllocation(ctx, site, allocate.Request{AllocationSpec: spec}, made, timeout)
	return err
}
