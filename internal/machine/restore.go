package machine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// ReasonRestoring is the maintenance reason of a node whose record is being restored.
const ReasonRestoring = "terraform-provider-metal: the record is being restored"

// Restored returns a node as it is when the restoration of its record has ended: with the maintenance and automated_clean that it gets
// back. A node whose record is not being restored stays as it is.
func Restored(n *ironic.Node) *ironic.Node {
	if !notes.IsRestoring(n) {
		return n
	}
	r, after := notes.RestoringOf(n), *n
	after.Maintenance, after.MaintenanceReason, after.AutomatedClean = r.Maintenance, r.Reason, r.Clean
	return &after
}

// EndRestoring ends the restoration of the node's record: Ironic takes care of the machine again. Afterwards the note says only that the
// record was restored.
func (m *Machine) EndRestoring(ctx context.Context) error {
	if !notes.IsRestoring(m.node) {
		return nil
	}
	r, isFenced := *notes.RestoringOf(m.node), m.node.MaintenanceReason == ReasonRestoring || !m.site.IsOfOthers(m.node)
	if err := m.SetMaintenance(ctx, Maintenance{On: r.Maintenance, Reason: r.Reason}); err != nil {
		return err
	}
	var patch ironic.Patch
	switch {
	case !isFenced: // another client may have made the note up
	case r.Clean != nil:
		patch.Set("/automated_clean", *r.Clean)
	default:
		patch.Remove("/automated_clean")
	}
	r.Done = true
	patch.Set("/extra/"+notes.KeyRestoring, r)
	return m.Patch(ctx, patch)
}

// Restoring begins the restoration of a record that exists, such as one of an older backup, or goes back to before its end: neither Ironic
// nor its users do anything to the machine until EndRestoring.
func (m *Machine) Restoring(ctx context.Context) error {
	r := notes.Restoring{
		State: m.State(), Maintenance: m.node.Maintenance, Reason: m.node.MaintenanceReason, Clean: m.node.AutomatedClean,
	}
	if was := notes.RestoringOf(m.node); was != nil {
		r = *was
	}
	r.Done, r.Claim = false, ""
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyRestoring, r)
	patch.Set("/automated_clean", false)
	if err := m.SetMaintenance(ctx, Maintenance{On: true, Reason: ReasonRestoring}); err != nil {
		return err
	}
	return m.Patch(ctx, patch)
}

// CheckReturn returns an error unless the machine of a restored record may return to the pool: it was there, and is off.
func CheckReturn(node *ironic.Node) error {
	was := notes.RestoringOf(node).State
	if was == nodes.Available && (node.PowerState != powerOn || node.DisablePowerOff) {
		return nil
	}
	e := &failure.Error{
		Kind: KindRefused, Node: node, Fact: fmt.Sprintf("node %s was in state %q when Terraform saw it last, and its machine is "+
			"%s, so something may run on it. It stays in maintenance, and does not return to the pool", ironic.NodeLabel(node), was,
			cmp.Or(Power(node), "perhaps on")),
		Advice: "Apply the metal_deployment of the machine with lost_records = \"restore\". If nothing is to be kept, switch the machine " +
			"off (metal power off) and apply again.",
	}
	if was != nodes.Available {
		e.Advice = "Apply the metal_deployment of the machine with lost_records = \"restore\". If nothing is to be kept, remove the " +
			"reservation (baremetal node unset NODE --instance-uuid) and apply the metal_host without lost_records."
	}
	return e
}
