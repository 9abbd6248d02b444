package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// steps are the operations on a machine beyond its settings. The plan announces them, and the apply does no others.
type steps struct {
	walks         bool // changes the provision state; the way to available includes cleaning
	inspects      bool
	again         bool // inspects a machine that may have been inspected before, because of inspect_triggers
	switches      bool // switches the power
	boots         bool // changes boot mode or secure boot
	learnsPower   bool // switches the machine off, so that Ironic knows its power state
	configures    bool // changes BIOS, RAID or firmware in a manual cleaning, on the walk
	services      bool // changes BIOS or firmware of the deployed machine
	verifies      bool // the walk only verifies credentials that have arrived, though target_state is enroll
	heldByOneView bool // takes no steps, because OneView uses the hardware
}

// notes are what private state says of a host.
type notes struct {
	applied    bool   // a configuration was applied to it
	inspected  bool   // it has been inspected
	pending    string // fingerprint of the triggers whose inspection has not succeeded yet; empty: none
	unverified bool   // the verification of credentials that arrived later has failed

	hardware provision.Hardware // known to be on the machine
	found    []provision.Part   // found on the machine by the plan
	open     []provision.Part   // configured, and not known to be on the machine
	live     bool               // deployed machines are serviced

	quarantine string // why the node is in quarantine; empty: it is in none
	retires    bool   // the configuration that was applied last has retired

	power []string // the power_state that was configured when a configuration was applied last; empty: none
}

// readNotes reads the notes.
func readNotes(ctx context.Context, p framework.GettablePrivate) notes {
	unverified, _ := p.GetKey(ctx, unverifiedKey)
	before := readManaged(ctx, p)
	pending, _ := p.GetKey(ctx, pendingKey)
	quarantine, _ := p.GetKey(ctx, quarantineKey)
	return notes{
		quarantine: textOf(quarantine), retires: before.has("/retired"),
		applied: before != nil, inspected: wasInspected(ctx, p), pending: textOf(pending), unverified: unverified != nil, power: before.below("/power_state"),
		hardware: readHardware(ctx, p), found: readFound(ctx, p),
	}
}

// textOf returns a text that private state has; "" if there is none.
func textOf(value []byte) (text string) {
	if value != nil {
		_ = json.Unmarshal(value, &text) // a text of our own
	}
	return text
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
		return steps{services: known.live && len(liveParts(known.open)) > 0 && provision.Serviceable(ironic.State(state.ProvisionState.ValueString())) && !plan.heldInMaintenance(state)}
	}
	s := steps{
		switches: !config.PowerState.IsNull() && (wasUnmanaged || !config.PowerState.Equal(state.PowerState)),
		boots:    bootsOtherwise(state, config),
	}
	if provision.Deployed(state.node()) {
		returns := plan.returns(config, state)
		s.heldByOneView = returns && isOutOfService(config, state)
		s.walks = returns && !s.heldByOneView
		return s
	}
	if plan.TargetState.ValueString() == targetEnroll {
		arrive := wasUnmanaged || known.unverified || known.applied && state.BMC.IsNull() && !plan.BMC.IsNull()
		s.verifies = arrive && !framework.IsFalse(plan.PowerManaged) && state.ProvisionState.ValueString() == targetEnroll
		s.walks = s.verifies
		return s
	}
	s.again = plan.inspectsAgain(state, known)
	inspects := s.again || plan.mayInspect() && !known.inspected
	configures := len(known.open) > 0 && !plan.heldInMaintenance(state)
	walks := inspects || configures || !plan.settled(state)
	if isOutOfService(config, state) {
		return steps{heldByOneView: walks || s.switches || s.boots}
	}
	s.walks, s.inspects, s.configures = walks, inspects, configures
	s.learnsPower = known.applied && !walks && state.PowerManaged.ValueBool() && config.PowerState.IsNull() && state.PowerState.IsNull() &&
		plan.TargetState.ValueString() == string(provision.GoalAvailable) && state.ProvisionState.ValueString() == string(provision.GoalAvailable)
	return s
}

// strays reports whether a reserved host rests in another state than the configured one, because another client of Ironic has moved it.
func (m *model) strays(config, state *model) bool {
	return framework.IsSet(config.TargetState) && config.TargetState.ValueString() != targetEnroll && !state.InstanceID.IsNull() &&
		provision.Parked(ironic.State(state.ProvisionState.ValueString())) && !m.settled(state)
}

// returns reports whether a reserved host returns to the pool. Only an allocation reserves hosts of the pool alone. Any other reservation may
// be for what runs on the machine already.
func (m *model) returns(config, state *model) bool {
	return m.strays(config, state) && !state.AllocationID.IsNull() && slices.Equal(m.goals(), []provision.Goal{provision.GoalAvailable})
}

// settled reports whether a host has reached all states that it may have to reach.
func (m *model) settled(state *model) bool {
	return !slices.ContainsFunc(m.goals(), func(goal provision.Goal) bool {
		return !provision.Settled(goal, ironic.State(state.ProvisionState.ValueString()))
	})
}

// warnStray says why a reserved host does not reach its target state.
func (m *model) warnStray(config, state *model, steps steps, diags *diag.Diagnostics) {
	if !m.strays(config, state) || steps.walks || steps.heldByOneView {
		return
	}
	why := fmt.Sprintf("Deploying its instance needs state available, so the host stays there. It becomes %s when the reservation ends.", m.goals()[0])
	if !provision.InPool(state.node()) {
		why = "That is not an allocation: another client of Ironic may be about to adopt what runs on the machine, so the host stays as it is. If nothing runs on it, make it available with " +
			"`baremetal node provide`, which cleans it, or remove its instance_uuid."
	}
	diags.AddAttributeWarning(path.Root("target_state"), "Reserved host is not in its target state", fmt.Sprintf("Host %s is %s, and reserved by %s. %s",
		m.describe(), state.ProvisionState.ValueString(), state.InstanceID.ValueString(), why))
}

// goals returns the state that the host is to reach, or all that are possible if that is not known yet. It is target_state, except
// that a retired node does not become available.
func (m *model) goals() []provision.Goal {
	target := provision.Goal(m.TargetState.ValueString())
	available := m.TargetState.IsUnknown() || target == provision.GoalAvailable
	switch {
	case available && m.Retired.ValueBool():
		return []provision.Goal{provision.GoalManageable}
	case available && (m.TargetState.IsUnknown() || m.Retired.IsUnknown()):
		return []provision.Goal{provision.GoalManageable, provision.GoalAvailable}
	}
	return []provision.Goal{target}
}

// mayInspect reports whether inspect is true or not known yet.
func (m *model) mayInspect() bool { return m.Inspect.IsUnknown() || m.Inspect.ValueBool() }

// heldInMaintenance reports whether the host is or will be in maintenance that Ironic has not set after a fault. Ironic runs no steps
// then.
func (m *model) heldInMaintenance(state *model) bool {
	return m.Maintenance.ValueBool() && state.Fault.IsNull() && m.MaintenanceReason.ValueString() != provision.ReasonChanging
}

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
	goal := c.plan.goals()[0]
	return provision.Preparable(node) && !c.isOutOfService(node) && goal != targetEnroll && !provision.Settled(goal, ironic.State(node.ProvisionState))
}

// isOutOfService reports whether metal oneview sync has taken a node out of service, and returns it when the hardware is free.
func (c *change) isOutOfService(node *ironic.Node) bool {
	return sharing.OutOfService(node) && c.config.Maintenance.IsNull()
}
