package machine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Qualify runs the steps of a recipe on the free machine, which leaves the pool for that and is manageable afterwards, and notes the
// outcome on the node. If an interrupted run has begun that, Qualify takes what came of it. If the machine fails, the error is of
// KindFailed; if quarantines, the node is then retired, unless the reason does not speak against the machine.
func (m *Machine) Qualify(ctx context.Context, recipe notes.Recipe, quarantines bool, timeout time.Duration) error {
	if err := m.refuseUsed("cleans"); err != nil {
		return err
	}
	if err := m.refuseErasing(ctx, recipe.Order(), true); err != nil {
		return err
	}
	if _, err := m.site.ErasingSteps(ctx, recipe.Order()); err != nil { // a runbook that does not exist takes no machine out of the pool
		return err
	}
	if ended, err := m.EndQualification(ctx, quarantines, timeout); ended || err != nil {
		return err
	}
	was := notes.QualificationOf(m.node)
	begun := &notes.Qualification{Recipe: recipe}
	defer m.Preparing(Preparation{
		Write: func(ctx context.Context) error { return m.beginQualification(ctx, begun, was) },
		Undo:  func(ctx context.Context) { _ = m.Patch(ctx, m.asBefore(begun, was)) }, // the next try writes it again
	})()
	m.qualifies = true
	defer func() { m.qualifies = false }()
	err := m.RunSteps(ctx, false, recipe.Order(), timeout)
	switch {
	case err == nil, failure.Is(err, failure.KindFailed) && m.State() == nodes.CleanFail:
		return m.endQualification(ctx, begun, quarantines, err)
	case ctx.Err() == nil && !states.InProgress(m.State()) && !begun.Begun.IsZero(): // Ironic has refused the steps
		return errors.Join(err, m.Patch(ctx, m.asBefore(begun, was)))
	}
	return err
}

// EndQualification ends a qualification that an interrupted run has begun, and reports whether there was one and what came of it is known.
// The error is as that of Qualify.
func (m *Machine) EndQualification(ctx context.Context, quarantines bool, timeout time.Duration) (ended bool, err error) {
	was := notes.QualificationOf(m.node)
	if was == nil || was.Begun.IsZero() {
		return false, nil
	}
	if ended, err = m.endBegun(ctx, was, timeout); ended {
		err = m.endQualification(ctx, was, quarantines, err)
	}
	return ended, err
}

// beginQualification notes that a qualification begins, and sets its parameters. One that was noted before counts no more.
func (m *Machine) beginQualification(ctx context.Context, q, was *notes.Qualification) error {
	q.Begun, q.From = m.now(), m.node.ProvisionUpdatedAt
	var patch ironic.Patch
	if was != nil {
		patch = m.withoutParameters(was)
	}
	for _, key := range slices.Sorted(maps.Keys(q.Parameters)) {
		patch.Set("/driver_info/"+key, q.Parameters[key])
	}
	patch.Set("/extra/"+notes.KeyQualification, q)
	return m.Patch(ctx, patch)
}

func (m *Machine) now() time.Time { return m.site.Ironic.ServerNow().UTC().Truncate(time.Second) }

// asBefore returns the patch that takes a qualification back which has not begun. was is the note before it; nil: there was none.
func (m *Machine) asBefore(q, was *notes.Qualification) ironic.Patch {
	patch := m.withoutParameters(q)
	if was != nil {
		patch.Set("/extra/"+notes.KeyQualification, was)
	} else if _, has := m.node.Extra[notes.KeyQualification]; has {
		patch.Remove("/extra/" + notes.KeyQualification)
	}
	return patch
}

// endBegun waits for the end of a qualification that an interrupted run has begun. ended is false if its steps have not begun, or if
// nothing proves what came of them. The error is that of the steps.
func (m *Machine) endBegun(ctx context.Context, was *notes.Qualification, timeout time.Duration) (ended bool, err error) {
	if m.node.ProvisionUpdatedAt.Equal(was.From) {
		return false, nil
	}
	if err := m.awaitEnd(ctx, time.Now().Add(timeout), timeout); err != nil {
		return false, err
	}
	if err := m.Refresh(ctx); err != nil {
		return false, err
	}
	if now := notes.QualificationOf(m.node); now == nil || now.Begun.IsZero() {
		return false, m.refuse("another run has ended its qualification meanwhile. Plan again")
	}
	switch m.State() { //nolint:exhaustive // others have moved the node since
	case nodes.CleanFail:
		return true, FailedOn(m.node, states.GoalConfigured, "", nil)
	case nodes.Manageable:
		failed, err := m.failedSince(ctx, was.Begun)
		return !failed && err == nil && !InspectedAt(m.node).After(was.Begun), err
	}
	return false, nil
}

// failedSince reports whether an operation on the machine has failed since a time. Since Ironic 31, last_error may be empty by then.
func (m *Machine) failedSince(ctx context.Context, since time.Time) (bool, error) {
	if m.node.LastError != "" {
		return true, nil
	}
	if version, err := m.site.Ironic.Highest(ctx); err != nil || version < api.VersionHistory {
		return false, err
	}
	events, err := m.site.Ironic.History(ctx, m.node.UUID)
	return slices.ContainsFunc(events, func(e ironic.Event) bool { return e.IsError() && e.CreatedAt.After(since.Add(-clock.Slack)) }), err
}

// endQualification notes what came of a qualification, and takes its parameters away. failed is the error of its steps, which it returns.
func (m *Machine) endQualification(ctx context.Context, q *notes.Qualification, quarantines bool, failed error) error {
	if err := m.Refresh(ctx); err != nil { // polls have no driver_info
		return errors.Join(failed, err)
	}
	end, patch := notes.Qualification{Recipe: q.Recipe, Inspected: InspectedAt(m.node)}, m.withoutParameters(q)
	if why := failure.As(failed, failure.KindFailed); why != nil {
		end.Failed, end.Words = m.now(), api.FirstLine(why.Words)
		if quarantines && !m.node.Retired && (why.Why == nil || why.Why.Blame == reason.Machine) {
			quarantine := &notes.Quarantine{Unfit: true, Since: end.Failed}
			patch.Set("/retired", true)
			patch.Set("/retired_reason", quarantine.Reason())
			patch.Set("/extra/"+notes.KeyQuarantine, quarantine)
		}
	} else {
		inventory, err := m.site.Ironic.Inventory(ctx, m.node.UUID)
		if err != nil {
			return err
		}
		if end.Passed = m.now(); inventory != nil {
			end.Serial = inventory.System.Serial
		}
	}
	patch.Set("/extra/"+notes.KeyQualification, &end)
	return errors.Join(failed, m.Patch(ctx, patch))
}
