package machine

import (
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
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
	r := *notes.RestoringOf(m.node)
	if err := m.SetMaintenance(ctx, Maintenance{On: r.Maintenance, Reason: r.Reason}); err != nil {
		return err
	}
	var patch ironic.Patch
	if r.Clean != nil {
		patch.Set("/automated_clean", *r.Clean)
	} else {
		patch.Remove("/automated_clean")
	}
	r.Done = true
	patch.Set("/extra/"+notes.KeyRestoring, r)
	return m.Patch(ctx, patch)
}

// Restoring puts a node whose restoration has ended into the state before that end.
func (m *Machine) Restoring(ctx context.Context) error {
	r := *notes.RestoringOf(m.node)
	r.Done, r.Claim = false, ""
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyRestoring, r)
	patch.Set("/automated_clean", false)
	if err := m.SetMaintenance(ctx, Maintenance{On: true, Reason: ReasonRestoring}); err != nil {
		return err
	}
	return m.Patch(ctx, patch)
}
