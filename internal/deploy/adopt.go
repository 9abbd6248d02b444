package deploy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// checkAdoption returns an error of KindRefused unless something runs on the node that can be adopted, or Ironic can adopt the machine
// (reference/ironic.md#adopting-a-node).
func checkAdoption(n *ironic.Node) error {
	state := ironic.State(n.ProvisionState)
	if state == nodes.Active || n.InstanceUUID != "" && states.Finished(state) || states.Adoptable(state) {
		return nil
	}
	return machine.RefusedFor(n, states.ReasonNoAdopt.String())
}

// hosts returns the hosts that this plan creates or changes and that may be the one that is adopted.
func (l *Look) hosts() []expect.ExpectedHost {
	if l.Site == nil {
		return nil
	}
	return expect.HostsOf(l.Site, l.Wish.Node.V)
}

// becomesAvailable reports whether a host goes to the pool, from which Ironic adopts no machine, and is cleaned for that.
func becomesAvailable(h expect.ExpectedHost) bool { return h.Target == string(states.GoalAvailable) }

// refuseCleaned refuses to adopt a machine that its host cleans first, in the same apply. An allocation may reserve a node that this plan
// leaves alone.
func (l *Look) refuseCleaned() bool {
	hosts := l.hosts()
	if !l.Wish.Node.Set && !l.Wish.Allocation.IsNull() {
		return false
	}
	if len(hosts) == 0 || slices.ContainsFunc(hosts, func(h expect.ExpectedHost) bool { return !becomesAvailable(h) }) {
		return false
	}
	l.refuse(decide.At("adopt"), "Adopted machine would be cleaned", fmt.Sprintf("This plan makes host %s available before the adoption: "+
		"Ironic cleans the machine for that, which erases its disks, and adopts only manageable machines. Set target_state = "+
		"\"manageable\" on the metal_host of each machine that is adopted.", namesOf(hosts)))
	return true
}

// warnAdopted says how an adoption and its end affect the machine. label names it; "" if it is not known yet.
func (l *Look) warnAdopted(label string) {
	end := "leaves it running"
	if l.Wish.OnDestroy.V == DestroyUndeploys {
		end = "undeploys and cleans it, which erases its data"
	}
	is := ": nothing is written to its disks, and it is not restarted"
	var cleaned, disturbed []expect.ExpectedHost
	for _, h := range l.hosts() {
		switch {
		case becomesAvailable(h), h.Target == "": // or may
			cleaned = append(cleaned, h)
		case h.Disturbs:
			disturbed = append(disturbed, h)
		}
	}
	switch {
	case len(cleaned) > 0:
		is = ", unless it is one of the hosts that this plan makes available and cleans: " + namesOf(cleaned) + ". Adopt none of those"
	case len(disturbed) > 0:
		is = ". The adoption touches nothing, but this plan restarts or configures host " + namesOf(disturbed) + " before it"
	}
	l.warn(decide.At("adopt"), "Machine is adopted", fmt.Sprintf("Node %s is recorded as deployed, with what it runs%s. Destroying the "+
		"resource %s.", cmp.Or(label, "(known after apply)"), is, end))
}

func namesOf(hosts []expect.ExpectedHost) string {
	const most = 5
	var names []string
	for _, h := range hosts[:min(len(hosts), most)] {
		names = append(names, cmp.Or(h.Name, "(without a name)"))
	}
	if more := len(hosts) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// ReserveAdopted makes sure that the machine is reserved before it is adopted: otherwise other clients could take it. It returns the
// reservation of a machine that runs a deployment already, or makes one, with the mark of a creation. allocation is the reservation that
// the caller expects, or "". As ReserveNew, it takes over what a killed run has begun, and then also returns the mark of that run.
func ReserveAdopted(
	ctx context.Context, m *machine.Machine, allocation string, deadline time.Time,
) (instanceID string, by *notes.Creation, err error) {
	if err := checkAdoption(m.Node()); err != nil {
		return "", nil, err
	}
	if allocation != "" {
		return allocation, nil, machine.CheckReservation(m.Node(), allocation)
	}
	if by, err = finishReservation(ctx, m, "", func() bool { return true }, deadline); err != nil {
		return "", nil, err
	}
	if m.Node().InstanceUUID != "" && (by != nil || states.Finished(m.State())) {
		return m.Node().InstanceUUID, by, nil
	}
	if err := machine.CheckReservation(m.Node(), ""); err != nil {
		return "", nil, err
	}
	mark := m.Site().NewReservation(m.Node().UUID)
	return mark.Instance, nil, Claim(ctx, m, mark.Instance, mark)
}

// Adopt lets Ironic take the machine over as it runs: nothing is written to its disks. It waits for an adoption that an earlier run has
// started, repeats one that has failed, and does nothing to a machine that Ironic knows as deployed. Some boot interfaces need the
// deployment's instance_info.
func Adopt(ctx context.Context, m *machine.Machine, d Deployment, instanceID string, timeout time.Duration) error {
	if states.Finished(m.State()) {
		return machine.CheckReservation(m.Node(), instanceID)
	}
	if m.State() != nodes.Adopting {
		if err := Describe(ctx, m, d, InstanceMarkerOf(m.Node()).Keys); err != nil {
			return err
		}
	}
	return m.Walk(ctx, states.GoalAdopted, instanceID, ironic.Order{}, timeout)
}

// Describe gives instance_info of an adopted machine the additional keys of a deployment, and removes former keys that the deployment
// does not have. It does not touch the machine.
func Describe(ctx context.Context, m *machine.Machine, d Deployment, former []string) error {
	patch := editsOf(m.Node().InstanceInfo, d.InstanceInfo, slices.Clone(former))
	if len(patch) == 0 {
		return nil
	}
	mark := InstanceMarkerOf(m.Node())
	mark.Keys = slices.DeleteFunc(mark.Keys, func(key string) bool { return slices.Contains(former, key) })
	mark.Keys = append(mark.Keys, slices.Collect(maps.Keys(d.InstanceInfo))...)
	slices.Sort(mark.Keys)
	mark.Keys = slices.Compact(mark.Keys)
	patch.Set("/instance_info/"+notes.KeyMarker, mark)
	return m.Patch(ctx, patch)
}

// Readdress tells Ironic where the image is that the machine runs, and the secret for it. It does not touch the machine. The marker says
// so in the same request: a later refresh must not take the image for that of another client.
func Readdress(ctx context.Context, m *machine.Machine, d Deployment) error {
	want := d.AsInstanceInfo()
	maps.DeleteFunc(want, func(key string, _ any) bool { return key != keyImageSource && key != keyPullSecret })
	patch := editsOf(m.Node().InstanceInfo, want, []string{keyPullSecret})
	if len(patch) == 0 {
		return nil
	}
	mark := InstanceMarkerOf(m.Node())
	mark.Address, _ = want[keyImageSource].(string)
	patch.Set("/instance_info/"+notes.KeyMarker, mark)
	return m.Patch(ctx, patch)
}

// EndAdoption ends an adoption that has not succeeded, after the end of one in progress: the node goes back to manageable and is not
// reserved any more. runs reports whether Ironic has adopted the machine after all: then it keeps running and stays reserved. EndAdoption
// does nothing to a node that another instance has. The caller must have just read the node.
func EndAdoption(ctx context.Context, m *machine.Machine, instance string, timeout time.Duration) (runs bool, err error) {
	if m.Node().InstanceUUID != instance {
		return false, nil
	}
	err = m.Reach(ctx, states.GoalManageable, timeout)
	switch {
	case states.IsOccupied(m.Node()) && (err == nil || failure.Is(err, machine.KindRefused)):
		return true, nil
	case err != nil:
		return false, err
	}
	_, err = release(ctx, m, instance, nil, timeout)
	return false, err
}
