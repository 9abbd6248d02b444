package allocate

import (
	"context"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// DecideRestore says what the restoration of a lost allocation does. returns: no deployment has claimed its machine.
func DecideRestore(label string, returns bool) []decide.Notice {
	if !returns {
		return nil
	}
	detail := fmt.Sprintf("No deployment has claimed the machine of %s. It returns to the pool without a cleaning, if it was there and is "+
		"off, and is reserved again. If a deployment in another workspace runs on it, apply that first, with lost_records = "+
		"\"restore\".", label)
	return []decide.Notice{decide.Warn(nil, "Restored machine is reserved again", detail)}
}

// IsRestoring reports whether the record of a node is being restored, or was, for an allocation that does not have it again yet.
func IsRestoring(node *ironic.Node, allocation string) bool {
	r, by := notes.RestoringOf(node), notes.Claimant(node)
	return r != nil && (by == allocation || by == "" && !r.Done)
}

// Restore claims the node of an allocation that Ironic has lost, as soon as it has a record again, and keeps the allocation for the
// deployment of the machine, which makes it with its UUID. returns: there is no such deployment. Then the machine returns to the pool
// without a cleaning, and is reserved there, if it was in the pool and is off. In between, another client may reserve the node; then
// Restore returns an error.
func Restore(
	ctx context.Context, site *machine.Site, spec ironic.AllocationSpec, node string, returns bool, timeout time.Duration,
) error {
	lost.KeepAllocation(site, spec)
	m, err := site.Machine(ctx, node)
	switch {
	case api.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case !IsRestoring(m.Node(), spec.UUID), states.IsOccupied(m.Node()):
		return nil
	case returns:
		return reserveAgain(ctx, m, spec, timeout)
	case m.Node().InstanceUUID == "":
		var patch ironic.Patch
		patch.Set("/instance_uuid", spec.UUID)
		return m.Patch(ctx, patch)
	}
	return nil
}

// reserveAgain returns the machine of an allocation to the pool, and reserves it there.
func reserveAgain(ctx context.Context, m *machine.Machine, spec ironic.AllocationSpec, timeout time.Duration) error {
	from := m.Site().Ironic
	switch a, err := from.Allocation(ctx, spec.UUID); {
	case err == nil && a.State == ironic.AllocationActive:
		return m.EndRestoring(ctx)
	case err == nil: // of a killed run, which Ironic could not fulfil
		if err := from.DeleteAllocation(ctx, spec.UUID); err != nil {
			return err
		}
	case !api.IsNotFound(err):
		return err
	}
	if m.State() != nodes.Available { // so that Ironic knows whether the machine is on
		if err := m.Walk(ctx, states.GoalManageable, m.Node().InstanceUUID, ironic.Order{}, timeout); err != nil {
			return err
		}
	}
	if err := machine.CheckReturn(m.Node()); err != nil {
		return err
	}
	if err := claim(ctx, m, spec.UUID); err != nil {
		return err
	}
	if err := m.Reach(ctx, states.GoalAvailable, timeout); err != nil {
		return err
	}
	if err := m.EndRestoring(ctx); err != nil {
		return err
	}
	spec.CandidateNodes, spec.Node = []string{m.Node().UUID}, ""
	a, err := failure.CreateAllocation(ctx, from, spec)
	if err == nil {
		_, err = AwaitAllocation(ctx, m.Site(), Request{AllocationSpec: spec}, a, timeout)
	}
	if err != nil {
		return err
	}
	return claim(ctx, m, "")
}

// claim notes the allocation that gets a machine from the pool, and ends the reservation, with which Ironic would not give it.
func claim(ctx context.Context, m *machine.Machine, allocation string) error {
	r := *notes.RestoringOf(m.Node())
	if r.Claim == allocation {
		return nil
	}
	r.Claim = allocation
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyRestoring, r)
	if allocation != "" && m.Node().InstanceUUID != "" {
		patch.Remove("/instance_uuid")
	}
	return m.Patch(ctx, patch)
}

// RestoreGroup is Restore for the members of a group.
func RestoreGroup(ctx context.Context, site *machine.Site, g *Group, returns bool, timeout time.Duration) error {
	for _, m := range g.Members {
		spec := g.spec()
		spec.UUID, spec.Name = m.ID, m.Name
		if err := Restore(ctx, site, spec, m.NodeID, returns, timeout); err != nil {
			return err
		}
	}
	return nil
}
