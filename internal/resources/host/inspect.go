package host

import (
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// refuseInspection returns an error if the plan has announced another inspection and the node has been reserved or deployed since.
func (h *host) refuseInspection(ctx context.Context, c *change) error {
	if !c.todo.Has(enroll.DoInspectAgain) || !states.Deployed(c.node()) {
		return nil
	}
	return h.reach(ctx, c, states.GoalInspected)
}

// inspect inspects the node unless something has inspected it since the plan.
func (h *host) inspect(ctx context.Context, c *change) error {
	if states.Deployed(c.node()) {
		return nil
	}
	done, err := h.isInspected(ctx, c)
	if err != nil || done {
		return err
	}
	if err := h.reach(ctx, c, states.GoalInspected); err != nil {
		return err
	}
	c.inspected = true
	if c.todo.Has(enroll.DoInspectAgain) {
		return hardware.EndInspection(ctx, c.machine)
	}
	return nil
}

// isInspected reports whether the node needs no inspection any more: it has an inventory or, if triggers have requested another
// inspection, a killed run has finished that.
func (h *host) isInspected(ctx context.Context, c *change) (bool, error) {
	if c.todo.Has(enroll.DoInspectAgain) {
		_, succeeded := hardware.RequestedInspection(c.node())
		return succeeded, nil
	}
	if c.isMade || !machine.InspectedAt(c.node()).IsZero() {
		return !machine.InspectedAt(c.node()).IsZero(), nil
	}
	inventory, err := h.Site.Ironic.Inventory(ctx, c.node().UUID)
	return inventory != nil, err
}
