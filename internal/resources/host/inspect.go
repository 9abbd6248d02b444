package host

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// triggered reports whether inspect_triggers change from a state to a plan, so that Ironic inspects the machine again. A removal
// does nothing, and the first apply after an import only records the triggers. Triggers that are not known yet may change.
func (m *model) triggered(state *model, known notes) bool {
	return known.applied && !m.InspectTriggers.IsNull() && !m.InspectTriggers.Equal(state.InspectTriggers)
}

// inspectsAgain reports whether Ironic inspects the machine again: inspect_triggers change, or the inspection that they have
// requested has not succeeded yet.
func (m *model) inspectsAgain(state *model, known notes) bool {
	return m.triggered(state, known) || known.applied && known.pending != "" && !m.InspectTriggers.IsNull() && known.pending == m.fingerprint()
}

// fingerprint identifies the triggers.
func (m *model) fingerprint() string {
	return provision.Fingerprint(framework.StringMap(m.InspectTriggers))
}

// planInspection refuses a change of inspect_triggers if Ironic cannot inspect the machine now. It reports whether it did.
func (m *model) planInspection(ctx context.Context, state *model, known notes, diags *diag.Diagnostics) (refused bool) {
	if !framework.FullyKnown(ctx, m.InspectTriggers) || !m.triggered(state, known) {
		return false
	}
	why := ""
	switch node := state.node(); {
	case node.InstanceUUID != "" && !isOccupied(node):
		why = fmt.Sprintf("is reserved by %s. Ironic inspects a machine only while the node is free. Destroy its metal_allocation first, in an apply of its own", node.InstanceUUID)
	case provision.Deployed(node):
		why = fmt.Sprintf("is in state %q. Ironic inspects a machine only while nothing is deployed on it. Destroy its metal_deployment first, in an apply of its own", node.ProvisionState)
	case m.TargetState.ValueString() == targetEnroll:
		why = "has target_state = \"enroll\". Ironic inspects no machine in state enroll. Set target_state to manageable or available"
	case framework.IsFalse(m.PowerManaged) && !m.byAgent():
		why = "has no BMC, so Ironic cannot inspect it. Give it a bmc, or a driver with driver_info"
	default:
		return false
	}
	diags.AddAttributeError(path.Root("inspect_triggers"), "Host cannot be inspected now", fmt.Sprintf("Host %s %s, or leave inspect_triggers as they are.", m.describe(), why))
	return true
}

func warnInspection(ctx context.Context, diags *diag.Diagnostics, plan *model, again bool) {
	inspects, at := "inspects", path.Root("inspect")
	if plan.Inspect.IsUnknown() {
		inspects = "may inspect"
	}
	host := plan.describe()
	if again {
		at, host = path.Root("inspect_triggers"), host+" again"
		if !framework.FullyKnown(ctx, plan.InspectTriggers) {
			inspects = "may inspect"
		}
	}
	diags.AddAttributeWarning(at, "Inspection boots the machine", fmt.Sprintf("Ironic %s host %s. The machine boots for that.", inspects, host))
}

// noteTriggers adds to the patch of the node what a later run must know if this one is interrupted. It removes the note of triggers
// that are not configured any more, or that another configuration had before an import.
func (c *change) noteTriggers(edits *ironic.Patch) {
	imported := c.state != nil && c.before == nil
	switch {
	case c.steps.again:
		provision.RequestInspection(edits, c.node(), c.plan.fingerprint())
	case imported, c.config.InspectTriggers.IsNull():
		provision.ForgetInspection(edits, c.node())
	}
}

// refuseInspection returns an error if the plan has announced another inspection and the node has been reserved or deployed since.
func (h *host) refuseInspection(ctx context.Context, c *change) error {
	if !c.steps.again || !c.steps.inspects || !provision.Deployed(c.node()) {
		return nil
	}
	return h.reach(ctx, c, provision.GoalInspected)
}

// inspect inspects the node if the plan has announced that and nothing has inspected it since.
func (h *host) inspect(ctx context.Context, c *change) error {
	if !c.steps.inspects || provision.Deployed(c.node()) {
		return nil
	}
	done, err := h.isInspected(ctx, c)
	if err != nil || done {
		return err
	}
	if err := h.reach(ctx, c, provision.GoalInspected); err != nil {
		return err
	}
	c.inspected = true
	if c.steps.again {
		return c.machine.EndInspection(ctx)
	}
	return nil
}

// isInspected reports whether the node needs no inspection any more: it has an inventory or, if triggers have requested another
// inspection, a killed run has finished that.
func (h *host) isInspected(ctx context.Context, c *change) (bool, error) {
	if c.steps.again {
		_, succeeded := provision.RequestedInspection(c.node())
		return succeeded, nil
	}
	if c.isMade || !provision.InspectedAt(c.node()).IsZero() {
		return !provision.InspectedAt(c.node()).IsZero(), nil
	}
	inventory, err := h.Client.Inventory(ctx, c.node().UUID)
	return inventory != nil, err
}

// notePending records in private state whether the inspection that triggers have requested is still to come.
func notePending(ctx context.Context, node *ironic.Node, p framework.SettablePrivate) diag.Diagnostics {
	pending := pendingInspection(node)
	if pending == "" {
		return p.SetKey(ctx, pendingKey, nil)
	}
	return p.SetKey(ctx, pendingKey, []byte(fmt.Sprintf("%q", pending)))
}

// pendingInspection returns the fingerprint of the triggers whose inspection is still to come; empty if there is none.
func pendingInspection(node *ironic.Node) string {
	if triggers, succeeded := provision.RequestedInspection(node); !succeeded {
		return triggers
	}
	return ""
}

// noteInspection records in private state whether a node that is new to Terraform has been inspected. The node may have an
// inventory though Ironic's own inspection has not run.
func (h *host) noteInspection(ctx context.Context, node *ironic.Node, had framework.GettablePrivate, p framework.SettablePrivate, diags *diag.Diagnostics) {
	if !provision.InspectedAt(node).IsZero() || wasInspected(ctx, had) {
		noteInspected(ctx, node, p, diags)
		return
	}
	inventory, err := h.Client.Inventory(ctx, node.UUID)
	switch {
	case err != nil:
		diags.AddWarning("Inventory could not be read", "Whether node "+ironic.NodeLabel(node)+" has been inspected is not known, so the next apply may inspect it again. "+provision.Sentence(err))
	case inventory != nil:
		diags.Append(p.SetKey(ctx, inspectedKey, []byte("true"))...)
	}
}

// noteInspected records in private state that this run or an earlier one has inspected the machine.
func (c *change) noteInspected(ctx context.Context, p framework.SettablePrivate, diags *diag.Diagnostics) {
	if c.inspected {
		diags.Append(p.SetKey(ctx, inspectedKey, []byte("true"))...)
		return
	}
	noteInspected(ctx, c.node(), p, diags)
}

// noteInspected records in private state that a node has been inspected, if Ironic says so.
func noteInspected(ctx context.Context, node *ironic.Node, p framework.SettablePrivate, diags *diag.Diagnostics) {
	if !provision.InspectedAt(node).IsZero() {
		diags.Append(p.SetKey(ctx, inspectedKey, []byte("true"))...)
	}
}

// wasInspected reports whether private state says that the node has been inspected.
func wasInspected(ctx context.Context, p framework.GettablePrivate) bool {
	noted, _ := p.GetKey(ctx, inspectedKey)
	return string(noted) == "true"
}
