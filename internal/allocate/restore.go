package allocate

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// IsRestoring reports whether the record of a node is being restored that an allocation had reserved. The allocation may still have to be
// made after that.
func IsRestoring(node *ironic.Node, allocation string) bool {
	if node.InstanceUUID == "" && states.InPool(node) && IsClaimed(node, allocation) {
		return true
	}
	return notes.IsRestoring(node) && (node.InstanceUUID == allocation || node.InstanceUUID == "")
}

// IsClaimed reports whether an allocation that Ironic has lost has claimed a node whose record is being restored.
func IsClaimed(node *ironic.Node, allocation string) bool {
	return allocation != "" && notes.ClaimOf(node) == allocation
}

// Restore claims the node of an allocation that Ironic has lost, as soon as it has a record again, and keeps the allocation for the
// deployment of the machine, which makes it with its UUID. returns: there is no such deployment. Then the machine returns to the pool
// without a cleaning, and is reserved there. In between, another client may reserve the node; then Restore returns an error.
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
	if m.Node().InstanceUUID != "" { // Ironic lets an allocation take no node that has a reservation
		if err := claim(ctx, m, spec.UUID); err != nil {
			return err
		}
	}
	if err := m.Reach(ctx, states.GoalAvailable, timeout); err != nil {
		return err
	}
	if err := m.EndRestoring(ctx); err != nil {
		return err
	}
	spec.CandidateNodes = []string{m.Node().UUID}
	a, err := failure.CreateAllocation(ctx, from, spec)
	if err == nil {
		_, err = AwaitAllocation(ctx, m.Site(), Request{AllocationSpec: spec}, a, timeout)
	}
	if err == nil {
		err = m.Refresh(ctx)
	}
	if err != nil {
		return err
	}
	return claim(ctx, m, "")
}

// claim notes on a node which allocation gets it from the pool; "": that is done. A node without a reservation is what the pool has.
func claim(ctx context.Context, m *machine.Machine, allocation string) error {
	var patch ironic.Patch
	if allocation != "" {
		patch.Remove("/instance_uuid")
	}
	claimed := *notes.RestoringOf(m.Node())
	claimed.Claim = allocation
	patch.Set("/extra/"+notes.KeyRestoring, claimed)
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
