package provision

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// CheckAdoption returns a RefusedError unless something runs on the node that can be adopted, or Ironic can adopt the machine
// (reference/ironic.md#adopting-a-node).
func CheckAdoption(n *ironic.Node) error {
	state := ironic.State(n.ProvisionState)
	if state == nodes.Active || n.InstanceUUID != "" && Finished(state) || Adoptable(state) {
		return nil
	}
	return RefusedFor(n, reasonNoAdopt.String())
}

// ReserveAdopted makes sure that the machine is reserved before it is adopted: otherwise other clients could take it. It returns the
// reservation of a machine that runs a deployment already, or makes one, with the mark of a creation. allocation is the reservation that the
// caller expects, or "". As ReserveNew, it takes over what a killed run has begun, and then also returns the mark of that run.
func (m *Machine) ReserveAdopted(ctx context.Context, allocation string, deadline time.Time) (instance string, by *Creation, err error) {
	if err := CheckAdoption(m.node); err != nil {
		return "", nil, err
	}
	if allocation != "" {
		return allocation, nil, CheckReservation(m.node, allocation)
	}
	if by, err = m.finishReservation(ctx, "", func() bool { return true }, deadline); err != nil {
		return "", nil, err
	}
	if m.node.InstanceUUID != "" && (by != nil || Finished(m.state())) {
		return m.node.InstanceUUID, by, nil
	}
	if err := CheckReservation(m.node, ""); err != nil {
		return "", nil, err
	}
	mark := m.site.newReservation(m.node.UUID)
	return mark.Instance, nil, m.claim(ctx, mark.Instance, mark)
}

// Adopt lets Ironic take the machine over as it runs: nothing is written to its disks. It waits for an adoption that an earlier run has
// started, repeats one that has failed, and does nothing to a machine that Ironic knows as deployed. Some boot interfaces need the
// deployment's instance_info.
func (m *Machine) Adopt(ctx context.Context, d Deployment, instance string, timeout time.Duration) error {
	if Finished(m.state()) {
		return CheckReservation(m.node, instance)
	}
	if m.state() != nodes.Adopting {
		if err := m.Describe(ctx, d, markerOf(m.node).Keys); err != nil {
			return err
		}
	}
	return m.walk(ctx, GoalAdopted, instance, ironic.Order{}, timeout)
}

// Describe gives instance_info of an adopted machine the additional keys of a deployment, and removes former keys that the deployment
// does not have. It does not touch the machine.
func (m *Machine) Describe(ctx context.Context, d Deployment, former []string) error {
	patch := editsOf(m.node.InstanceInfo, d.InstanceInfo, slices.Clone(former))
	if len(patch) == 0 {
		return nil
	}
	mark := markerOf(m.node)
	mark.Keys = slices.DeleteFunc(mark.Keys, func(key string) bool { return slices.Contains(former, key) })
	mark.Keys = append(mark.Keys, slices.Collect(maps.Keys(d.InstanceInfo))...)
	slices.Sort(mark.Keys)
	mark.Keys = slices.Compact(mark.Keys)
	patch.Set("/instance_info/"+keyMarker, mark)
	return m.Patch(ctx, patch)
}

// EndAdoption ends an adoption that has not succeeded, after the end of one in progress: the node goes back to manageable and is not
// reserved any more. runs reports whether Ironic has adopted the machine after all: then it keeps running and stays reserved. EndAdoption
// does nothing to a node that another instance has. The caller must have just read the node.
func (m *Machine) EndAdoption(ctx context.Context, instance string, timeout time.Duration) (runs bool, err error) {
	if m.node.InstanceUUID != instance {
		return false, nil
	}
	err = m.Reach(ctx, GoalManageable, timeout)
	switch {
	case Occupied(m.node) && (err == nil || Is(err, KindRefused)):
		return true, nil
	case err != nil:
		return false, err
	}
	_, err = m.release(ctx, instance, nil, timeout)
	return false, err
}
