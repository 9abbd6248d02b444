package machine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Patch applies edits to the node; an empty patch sends nothing. It returns an error of KindSuperseded, and changes nothing, if another run
// has taken over the creation of the node.
func (m *Machine) Patch(ctx context.Context, patch ironic.Patch) error {
	return m.PatchWithin(ctx, patch, lockedFor)
}

// PatchWithin is Patch with a time-out for the lock of a conductor.
func (m *Machine) PatchWithin(ctx context.Context, patch ironic.Patch, timeout time.Duration) error {
	if len(patch) == 0 {
		return nil
	}
	asked := patch
	patch = m.site.Run.ForgetCreations(patch, m.node.Extra)
	tidy := notes.ForgetOperation(m.guarded(patch), m.node, m.site.Ironic.ServerNow())
	var node *ironic.Node
	err := m.UnlockedWithin(ctx, timeout, func() (err error) {
		node, err = m.site.Ironic.PatchNode(ctx, m.node.UUID, m.withWork(tidy))
		return err
	})
	switch {
	case len(tidy) > len(asked) && api.IsForbidden(err): // the user may not change extra
		patch = asked
		node, err = m.site.Ironic.PatchNode(ctx, m.node.UUID, m.guarded(asked))
	case len(tidy) > len(patch) && api.IsStatus(err, http.StatusBadRequest, ""):
		if lost := m.CheckCreation(ctx); lost != nil {
			return lost
		}
		node, err = m.site.Ironic.PatchNode(ctx, m.node.UUID, m.guarded(patch)) // another client may have removed the mark or the note
	}
	if err != nil {
		return m.site.ExplainDriver(ctx, driverOf(patch), failure.Unseen(ctx, m.site.Ironic, err))
	}
	m.applyAnswer(node)
	m.logState(ctx)
	for _, edit := range patch.OfExtra() {
		if notes.IsMark(edit.Path) {
			continue // another run may have replaced it for good
		}
		m.unconfirmed = append(slices.DeleteFunc(m.unconfirmed, func(e nodes.UpdateOperation) bool { return e.Path == edit.Path }), edit)
	}
	for _, key := range m.site.marksOn(node) {
		if !slices.Contains(m.marks, key) {
			m.marks = append(m.marks, key)
		}
	}
	return nil
}

// Write sends a patch that Ironic may refuse, and updates the record.
func (m *Machine) Write(ctx context.Context, patch ironic.Patch) error {
	node, err := m.site.Ironic.PatchNode(ctx, m.node.UUID, m.withWork(patch))
	if err == nil {
		m.applyAnswer(node)
	}
	return err
}

// withWork returns a patch of extra with the notes of work that has ended. Ironic accepts them where it accepts the rest.
func (m *Machine) withWork(patch ironic.Patch) ironic.Patch {
	if len(patch.OfExtra()) == 0 {
		return patch
	}
	return slices.Concat(patch, m.notesOfWork())
}

// notesOfWork returns the edits that note the work which this call has watched to its end, and which the node does not have.
func (m *Machine) notesOfWork() (patch ironic.Patch) {
	for key, w := range m.works() {
		if w.work.IsOver() && !w.noted {
			patch.Set("/extra/"+key, w.work)
		}
	}
	return patch
}

// NoteWork leaves the notes of a cleaning and a service that this call has watched to their end, unless another write has taken them along.
// They are of use only to people, so a failure is only logged.
func (m *Machine) NoteWork(ctx context.Context) {
	patch := m.notesOfWork()
	if len(patch) == 0 || ctx.Err() != nil {
		return
	}
	node, err := m.site.Ironic.PatchNode(ctx, m.node.UUID, notes.ForgetOperation(patch, m.node, m.site.Ironic.ServerNow()))
	if err != nil {
		m.site.Ironic.Logger().DebugContext(ctx, "could not note the work on a node", append(NodeAttributes(m.node), "error", err)...)
	} else {
		m.applyAnswer(node)
	}
	m.erasure.noted, m.service.noted = true, true
}

// guarded returns a patch that Ironic refuses if another run has taken over a creation of this run.
func (m *Machine) guarded(patch ironic.Patch) ironic.Patch {
	var guards ironic.Patch
	for _, key := range m.marks {
		if mark := notes.CreationOf(m.node.Extra, key); mark != nil && mark.Run == m.site.Run.ID && mark.Done.IsZero() {
			guards.Replace(mark.Path(key), mark)
		}
	}
	return append(guards, patch...)
}

// CheckCreation reads the node and returns an error of KindSuperseded if another run has taken over its creation.
func (m *Machine) CheckCreation(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	return m.superseded()
}

// PatchHost is Patch for edits that may change interfaces. While something is deployed on a node, Ironic accepts such edits only
// in maintenance, so that PatchHost makes them there. It also takes a node out of maintenance that a killed run has left in it.
// arrived reports whether Ironic has applied the edits; together with an error it means that only leaving maintenance has failed.
func (m *Machine) PatchHost(ctx context.Context, patch ironic.Patch) (arrived bool, err error) {
	if !m.leftChanging() && (len(patch.OfInterfaces()) == 0 || states.InterfacesChangeable(m.State())) {
		err := m.Patch(ctx, patch)
		return err == nil, err
	}
	err = m.inMaintenance(ctx, func() error {
		err := m.Patch(ctx, patch)
		arrived = err == nil
		return err
	})
	return arrived, err
}

// Reconnect calls change, which changes the connectivity of ports. Ironic accepts that in a few states of the node, and in maintenance
// (reference/ironic.md#changing-a-port). In other states the node is in maintenance while change runs.
func (m *Machine) Reconnect(ctx context.Context, change func() error) error {
	if states.PortsChangeable(m.State()) {
		return change()
	}
	return m.inMaintenance(ctx, change)
}

// ReasonChanging is the maintenance reason of a node whose interfaces or ports are being changed.
const ReasonChanging = "terraform-provider-metal: changing interfaces or ports"

// Maintenance is the maintenance of a node.
type Maintenance struct {
	On     bool
	Reason string
}

// SetMaintenance puts the node into maintenance, or takes it out, unless it is so.
func (m *Machine) SetMaintenance(ctx context.Context, want Maintenance) error {
	if want.On == m.node.Maintenance && (!want.On || want.Reason == m.node.MaintenanceReason) {
		return nil
	}
	if err := m.site.Ironic.SetMaintenance(ctx, m.node.UUID, want.On, want.Reason); err != nil {
		return err
	}
	m.Changed(func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason = want.On, want.Reason })
	return nil
}

// leftChanging reports whether a killed run has left the node in maintenance.
func (m *Machine) leftChanging() bool {
	return m.node.Maintenance && m.node.MaintenanceReason == ReasonChanging
}

// inMaintenance calls change while the node is in maintenance, and takes the node out again, also if change fails or the run is
// interrupted. Maintenance that others have set stays, also if they set it after the record was read or during the change.
func (m *Machine) inMaintenance(ctx context.Context, change func() error) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if m.node.Maintenance && !m.leftChanging() {
		return change()
	}
	if !m.node.Maintenance {
		if err := m.SetMaintenance(ctx, Maintenance{On: true, Reason: ReasonChanging}); err != nil {
			return err
		}
	}
	err := change()
	return errors.Join(err, m.endChanging(context.WithoutCancel(ctx)))
}

// endChanging takes the node out of the maintenance of inMaintenance, unless another client has given it another reason.
func (m *Machine) endChanging(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if !m.leftChanging() {
		return nil
	}
	return m.SetMaintenance(ctx, Maintenance{})
}
