package machine

import (
	"context"
	"maps"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// ForgetQualification ends what is noted of the qualification of the machine, and takes its parameters away. The steps stay noted.
func (m *Machine) ForgetQualification(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil { // polls have no driver_info
		return err
	}
	q := notes.QualificationOf(m.node)
	if q == nil {
		return nil
	}
	patch := m.withoutParameters(q)
	patch.Set("/extra/"+notes.KeyQualification, &notes.Qualification{Recipe: q.Recipe})
	return m.Patch(ctx, patch)
}

// forgetBegun forgets a qualification that an interrupted run has begun, before another operation moves the node: the end of that would
// look like its own.
func (m *Machine) forgetBegun(ctx context.Context) error {
	if q := notes.QualificationOf(m.node); q == nil || q.Begun.IsZero() || m.qualifies {
		return nil
	}
	return m.ForgetQualification(ctx)
}

func (m *Machine) withoutParameters(q *notes.Qualification) (patch ironic.Patch) {
	for _, key := range slices.Sorted(maps.Keys(q.Parameters)) {
		if _, has := m.node.DriverInfo[key]; has {
			patch.Remove("/driver_info/" + key)
		}
	}
	return patch
}
