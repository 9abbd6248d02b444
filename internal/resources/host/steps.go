package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// steps are the operations on a machine beyond its settings. The plan announces them, and the apply does no others.
type steps struct {
	walks         bool // changes the provision state; the way to available includes cleaning
	inspects      bool
	switches      bool // switches the power
	boots         bool // changes boot mode or secure boot
	learnsPower   bool // switches the machine off, so that Ironic knows its power state
	verifies      bool // the walk only verifies credentials that have arrived, though target_state is enroll
	heldByOneView bool // takes no steps, because OneView uses the hardware
}

// notes are what private state says of a host.
type notes struct {
	applied    bool // a configuration was applied to it
	inspected  bool // it has been inspected
	unverified bool // the verification of credentials that arrived later has failed

	power []string // the power_state that was configured when a configuration was applied last; empty: none
}

// readNotes reads the notes.
func readNotes(ctx context.Context, p framework.GettablePrivate) notes {
	unverified, _ := p.GetKey(ctx, unverifiedKey)
	before := readManaged(ctx, p)
	return notes{applied: before != nil, inspected: wasInspected(ctx, p), unverified: unverified != nil, power: before.below("/power_state")}
}

// stepsOfNew returns the steps for a new host.
func stepsOfNew(plan, config *model) steps {
	return steps{walks: true, inspects: plan.Inspect.ValueBool(), switches: framework.IsSet(config.PowerState), boots: bootsOtherwise(&model{}, config)}
}

// stepsFrom returns the steps from a state to a plan. If a planned value is not known yet, it includes all steps that the value
// may require.
func stepsFrom(state, plan, config *model, known notes) steps {
	wasUnmanaged := framework.IsFalse(state.PowerManaged)
	if wasUnmanaged && plan.PowerManaged.Equal(state.PowerManaged) && !plan.byAgent() || isOccupied(state.node()) {
		return steps{}
	}
	s := steps{
		switches: !config.PowerState.IsNull() && (wasUnmanaged || !config.PowerState.Equal(state.PowerState)),
		boots:    bootsOtherwise(state, config),
	}
	if provision.Deployed(state.node()) {
		return s
	}
	if plan.TargetState.ValueString() == targetEnroll {
		arrive := wasUnmanaged || known.unverified || known.applied && state.BMC.IsNull() && !plan.BMC.IsNull()
		s.verifies = arrive && !framework.IsFalse(plan.PowerManaged) && state.ProvisionState.ValueString() == targetEnroll
		s.walks = s.verifies
		return s
	}
	inspects := plan.mayInspect() && !known.inspected
	walks := inspects || slices.ContainsFunc(plan.goals(), func(goal provision.Goal) bool {
		return !provision.Settled(goal, ironic.State(state.ProvisionState.ValueString()))
	})
	if isOutOfService(config, state) {
		s.heldByOneView = walks
		return s
	}
	s.walks, s.inspects = walks, inspects
	s.learnsPower = known.applied && !walks && state.PowerManaged.ValueBool() && config.PowerState.IsNull() && state.PowerState.IsNull() &&
		plan.TargetState.ValueString() == string(provision.GoalAvailable) && state.ProvisionState.ValueString() == string(provision.GoalAvailable)
	return s
}

// goals returns the planned target state, or all that are possible if it is not known yet.
func (m *model) goals() []provision.Goal {
	if m.TargetState.IsUnknown() {
		return []provision.Goal{provision.GoalManageable, provision.GoalAvailable}
	}
	return []provision.Goal{provision.Goal(m.TargetState.ValueString())}
}

// mayInspect reports whether inspect is true or not known yet.
func (m *model) mayInspect() bool { return m.Inspect.IsUnknown() || m.Inspect.ValueBool() }

// isOccupied reports whether a node is deployed or being deployed. Its metal_deployment then controls the power.
func isOccupied(node *ironic.Node) bool {
	return provision.Deployed(&ironic.Node{ProvisionState: node.ProvisionState})
}

// node returns the provision state, reservation and maintenance that the state has of the node.
func (m *model) node() *ironic.Node {
	return &ironic.Node{
		ProvisionState: m.ProvisionState.ValueString(), InstanceUUID: m.InstanceID.ValueString(),
		Maintenance: m.Maintenance.ValueBool(), MaintenanceReason: m.MaintenanceReason.ValueString(),
	}
}

// asPlanned refuses a node whose provision state has changed since a plan that announced no walk: the way back may clean the
// node. If a deployment has ended meanwhile, asPlanned accepts the node, and the next plan announces the walk.
func (c *change) asPlanned(node *ironic.Node) error {
	if c.state == nil || c.steps.walks || provision.Deployed(c.state.node()) || !c.unsettled(node) {
		return nil
	}
	before := c.state.ProvisionState.ValueString()
	if node.ProvisionState == before {
		return nil // it got a BMC, or metal oneview has returned it to service: the next plan announces the walk
	}
	return fmt.Errorf("host %s has changed since the plan, from state %s to %s. Nothing was done to it. Plan again",
		c.plan.label(), before, node.ProvisionState)
}

// unsettled reports whether a node is not in its target state yet.
func (c *change) unsettled(node *ironic.Node) bool {
	target := c.plan.TargetState.ValueString()
	return provision.Preparable(node) && !c.isOutOfService(node) && target != targetEnroll && !provision.Settled(provision.Goal(target), ironic.State(node.ProvisionState))
}

// isOutOfService reports whether metal oneview sync has taken a node out of service, and returns it when the hardware is free.
func (c *change) isOutOfService(node *ironic.Node) bool {
	return sharing.OutOfService(node) && c.config.Maintenance.IsNull()
}
