package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Restoration lets Ironic know again what runs on a machine whose record its host has made anew. Ironic adopts the machine as it runs: it
// is neither switched nor written to, and a live ISO is not booted again.
type Restoration struct {
	Instance   string // the reservation
	Allocation string // its allocation; "" if there is none
	VIFs       []VIF
	Protected  bool
	Timeout    time.Duration // for the adoption

	IsOlder func(*ironic.Node) bool // the record is not the one that Terraform has seen
}

// DecideRestore is the plan of a deployment whose record is restored.
func DecideRestore(label string, was ironic.State) (p Plan) {
	switch {
	case !states.KeepsDeployment(was):
		p.Notices = append(p.Notices, decide.Warn(nil, "Deployment is not restored", fmt.Sprintf("The deployment on %s was %s when "+
			"Terraform saw it last, so it is not known what is on the disks. It stays in the state as it is. To deploy it anew, set "+
			"lost_records = \"recreate\" when this plan is applied.", label, was)))
		return p
	case RescueOf(was) != NotRescued:
		p.Notices = append(p.Notices, decide.Warn(nil, "Rescued machine is restored as active", fmt.Sprintf("Node %s was in state %s. "+
			"Ironic will know it as active, and the rescue system still runs. The next plan shows what rescue makes of that.", label, was)))
	default:
		p.Notices = append(p.Notices, decide.Warn(nil, "Lost deployment is restored", fmt.Sprintf("Ironic adopts what runs on %s, which "+
			"was %s when Terraform saw it last. The machine is neither switched nor written to.", label, was)))
	}
	p.Steps = []Step{{Do: DoRestore}}
	return p
}

// Restore restores the deployment of a machine. It goes on where a killed run has stopped.
func Restore(ctx context.Context, m *machine.Machine, d Deployment, r Restoration) error {
	node := m.Node()
	is, older := notes.IsRestoring(node), r.IsOlder(node)
	switch rests := states.Parked(m.State()) || m.State() == nodes.Active; {
	case is && (node.InstanceUUID == r.Instance || node.InstanceUUID == ""):
		older = false
	case older && rests && (node.InstanceUUID == r.Instance || node.InstanceUUID == ""), // of a backup that is as old as its host's state
		node.InstanceUUID == r.Instance && notes.RestoringOf(node) != nil && states.Parked(m.State()): // its allocation was faster
		if err := m.Restoring(ctx); err != nil {
			return err
		}
	case node.InstanceUUID == r.Instance && m.State() == nodes.Active: // a killed run has ended it
		return nil
	default:
		return &failure.Error{
			Kind: machine.KindRefused, Node: node, Fact: fmt.Sprintf("the record of node %s is not being restored, or was given to "+
				"another reservation. Nothing was done", ironic.NodeLabel(node)),
			Advice: "First restore its metal_host: apply that with lost_records = \"restore\".",
		}
	}
	if m.State() == nodes.Available {
		if err := m.Walk(ctx, states.GoalManageable, node.InstanceUUID, ironic.Order{}, r.Timeout); err != nil {
			return err
		}
	}
	if older || !states.Finished(m.State()) {
		if err := r.adopt(ctx, m, d); err != nil {
			return err
		}
	}
	if r.Allocation != "" {
		if err := restoreAllocation(ctx, m, r.Allocation); err != nil {
			return err
		}
	}
	if r.Protected {
		if err := Protect(ctx, m, true); err != nil {
			return err
		}
	}
	if err := m.EndRestoring(ctx); err != nil {
		return err
	}
	return m.Refresh(ctx)
}

// adopt gives the node what a deployment writes, and lets Ironic adopt the machine.
func (r Restoration) adopt(ctx context.Context, m *machine.Machine, d Deployment) error {
	if m.State() == nodes.Enroll || m.State() == nodes.Verifying {
		if err := m.Walk(ctx, states.GoalManageable, r.Instance, ironic.Order{}, r.Timeout); err != nil {
			return err
		}
	}
	if m.State() != nodes.Adopting {
		node, want := m.Node(), d.AsInstanceInfo()
		// without a state it counts as deployed
		want[notes.KeyMarker] = InstanceMarker{Digest: d.Digest(), Keys: slices.Sorted(maps.Keys(want))}
		var patch ironic.Patch
		if node.InstanceUUID == "" { // the host did not know of the deployment
			patch.Set("/instance_uuid", r.Instance)
		}
		patch = slices.Concat(patch, editsOf(node.InstanceInfo, want, nil), nameEdits(node, d.Name))
		if d.LiveISO != nil {
			patch.Set("/extra/"+notes.KeyBoot, BootNote{Record: bootiso.NewRecord(d.LiveISO.Artifacts, time.Now(), nil)})
		}
		if err := m.Patch(ctx, patch); err != nil {
			return err
		}
		if err := ConnectVIFs(ctx, m, VIFConnections{Wanted: r.VIFs}); err != nil {
			return err
		}
	}
	if states.Finished(m.State()) { // as an older record says
		return nil
	}
	return m.Walk(ctx, states.GoalAdopted, r.Instance, ironic.Order{}, r.Timeout)
}

// restoreAllocation creates the allocation of an active node with its former UUID. What a failed try or an older backup has left of it is
// removed first.
func restoreAllocation(ctx context.Context, m *machine.Machine, id string) error {
	from := m.Site().Ironic
	found, err := from.Allocation(ctx, id)
	switch {
	case err == nil && found.State == ironic.AllocationActive && found.NodeUUID == m.Node().UUID:
		return nil
	case err == nil:
		err = from.DeleteAllocation(ctx, id)
	case api.IsNotFound(err):
		err = nil
	}
	if err != nil {
		return err
	}
	spec := lost.Allocation(m.Site(), id)
	spec.Node = m.Node().UUID
	_, err = failure.CreateAllocation(ctx, from, spec)
	return err
}
