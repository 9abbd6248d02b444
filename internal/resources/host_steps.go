package resources

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// hostSteps are what is done to a machine beyond its settings. A plan announces them, and an apply takes no others.
type hostSteps struct {
	walks    bool // over provision states; cleaning is on the way to available
	inspects bool
	switches bool // its power
	withheld bool // it stays where it is, because OneView uses its hardware
}

// stepsOfNew are the steps for a host that is created.
func stepsOfNew(plan, config *hostModel) hostSteps {
	return hostSteps{walks: true, inspects: plan.Inspect.ValueBool(), switches: isSet(config.PowerState)}
}

// stepsFrom are the steps from a state to what is planned; while something of the plan is not known, all that it may come to.
// inspected says whether there was an inspection before.
func stepsFrom(state, plan, config *hostModel, inspected bool) hostSteps {
	wasUnmanaged := isFalse(state.PowerManaged)
	if wasUnmanaged && plan.PowerManaged.Equal(state.PowerManaged) || isOccupied(state.node()) {
		return hostSteps{}
	}
	s := hostSteps{switches: !config.PowerState.IsNull() && (wasUnmanaged || !config.PowerState.Equal(state.PowerState))}
	if ironic.Deployed(state.node()) || plan.TargetState.ValueString() == targetEnroll {
		return s
	}
	inspects := plan.mayInspect() && !inspected && state.Inventory.IsNull()
	walks := inspects || slices.ContainsFunc(plan.goals(), func(goal ironic.Goal) bool {
		return !ironic.Settled(goal, ironic.State(state.ProvisionState.ValueString()))
	})
	if isWithdrawn(config, state) {
		s.withheld = walks
		return s
	}
	s.walks, s.inspects = walks, inspects
	return s
}

// goals are where a plan takes a node: to its target state, or to any while that is not known.
func (m *hostModel) goals() []ironic.Goal {
	if m.TargetState.IsUnknown() {
		return []ironic.Goal{ironic.GoalManageable, ironic.GoalAvailable}
	}
	return []ironic.Goal{ironic.Goal(m.TargetState.ValueString())}
}

// mayInspect reports whether a plan says to inspect the node, or may come to say so.
func (m *hostModel) mayInspect() bool { return m.Inspect.IsUnknown() || m.Inspect.ValueBool() }

// isOccupied reports whether something is deployed on a node, or about to be: then its power is that one's to switch.
func isOccupied(node *ironic.Node) bool {
	return ironic.Deployed(&ironic.Node{ProvisionState: node.ProvisionState})
}

// node is what a state tells of the node's whereabouts.
func (m *hostModel) node() *ironic.Node {
	return &ironic.Node{
		ProvisionState: m.ProvisionState.ValueString(), InstanceUUID: m.InstanceUUID.ValueString(),
		Maintenance: m.Maintenance.ValueBool(), MaintenanceReason: m.MaintenanceReason.ValueString(),
	}
}

// asPlanned refuses a node that has left, since the plan, the state that it was to stay in: the way back may clean it, and was
// not announced. One whose deployment has ended meanwhile is left for the next plan.
func (c *hostChange) asPlanned(node *ironic.Node) error {
	if c.state == nil || c.steps.walks || ironic.Deployed(c.state.node()) || !c.unsettled(node) {
		return nil
	}
	before := c.state.ProvisionState.ValueString()
	if node.ProvisionState == before {
		return nil // it has been given a BMC, or back by metal-oneview: for the next plan
	}
	return fmt.Errorf("host %s has changed since the plan: it is in state %s, was %s. Nothing was done to it; plan again",
		c.plan.label(), node.ProvisionState, before)
}

// unsettled reports whether a node has a way to go to its target state.
func (c *hostChange) unsettled(node *ironic.Node) bool {
	target := c.plan.TargetState.ValueString()
	return ironic.PowerManaged(node) && !c.isWithdrawn(node) && target != targetEnroll && !ironic.Settled(ironic.Goal(target), ironic.State(node.ProvisionState))
}

// isWithdrawn reports whether a node is for metal-oneview sync to bring back, when its hardware is free.
func (c *hostChange) isWithdrawn(node *ironic.Node) bool {
	return oneview.Withdrawn(node) && c.config.Maintenance.IsNull()
}
