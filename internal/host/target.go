package host

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// GoalEnroll is a target_state that no walk leads to: every node begins there.
const GoalEnroll states.Goal = "enroll"

const stateEnroll ironic.State = "enroll"

// Targets are the values of target_state.
func Targets() []string {
	return []string{string(GoalEnroll), string(states.GoalManageable), string(states.GoalAvailable)}
}

// TargetOf returns the target state that matches the provision state of an imported node.
func TargetOf(node *ironic.Node) string {
	switch {
	case ironic.State(node.ProvisionState) == stateEnroll:
		return string(GoalEnroll)
	case node.InstanceUUID != "" || states.Settled(states.GoalAvailable, ironic.State(node.ProvisionState)):
		return string(states.GoalAvailable)
	}
	return string(states.GoalManageable)
}

// IsComing reports whether Ironic is on the way to available with a node, without a further request: it cleans the node, or is about to
// after an undeploy.
func IsComing(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	return states.Has(state, states.Coming) && states.Has(state, states.Busy) && node.TargetProvisionState == string(states.GoalAvailable)
}

// TargetWithBMC returns the target state of a host that has a BMC now and whose configuration has no target_state: one that waits in enroll
// becomes manageable.
func TargetWithBMC(target string, s ironic.State) string {
	if target == string(GoalEnroll) && s == stateEnroll {
		return string(states.GoalManageable)
	}
	return target
}

// goals returns the state that the host is to reach, or all that are possible if that is not known yet. It is target_state, except that a
// retired node does not become available, and neither does one whose hardware is not as expected, or that cannot be qualified now.
func (p *plan) goals() []states.Goal {
	target := states.Goal(p.Target.V)
	available := p.Target.Unknown || target == states.GoalAvailable
	switch {
	case available && (p.Retired.V || p.isKeptOut() || p.isUnproven()):
		return []states.Goal{states.GoalManageable}
	case available && (p.Target.Unknown || p.Retired.Unknown):
		return []states.Goal{states.GoalManageable, states.GoalAvailable}
	}
	return []states.Goal{target}
}

func (p *plan) inPool() bool { return states.InPool(p.seen.node()) || p.seen.Coming }

// isUnproven reports whether a machine stays out of the pool, because Ironic cannot qualify it in maintenance.
func (p *plan) isUnproven() bool {
	held := p.Held || p.seen.New && p.Maintenance.V
	holds := p.seen.Fitness != nil && p.seen.Fitness.Holds
	return held && !p.Qualification.IsNull() && !holds && (p.seen.New || !p.inPool() || p.Has(DoReplace))
}

func (p *plan) settled() bool {
	return !slices.ContainsFunc(p.goals(), func(goal states.Goal) bool { return !states.Settled(goal, p.seen.State) })
}

func (p *plan) mayBecomeAvailable() bool { return slices.Contains(p.goals(), states.GoalAvailable) }

// mayInspect reports whether inspect is true or not known yet.
func (p *plan) mayInspect() bool { return p.Inspect.V || p.Inspect.Unknown }

func (p *plan) mayBeInspected() bool { return p.mayInspect() && p.Target.V != string(GoalEnroll) }

func (p *plan) mayBeCleaned() bool { return p.mayBecomeAvailable() && !isFalse(p.AutomatedClean) }

// strays reports whether a reserved host rests in another state than the configured one, because another client of Ironic has moved it.
func (p *plan) strays() bool {
	return p.TargetSet && p.Target.V != string(GoalEnroll) && p.seen.Instance != "" && states.Parked(p.seen.State) && !p.settled()
}

// returns reports whether a reserved host may return to the pool. Only an allocation reserves hosts of the pool alone. Any other
// reservation may be for what runs on the machine already.
func (p *plan) returns() bool {
	return p.strays() && p.seen.Allocated && p.mayBecomeAvailable() && !states.Settled(states.GoalAvailable, p.seen.State)
}

// triggered reports whether inspect_triggers change, so that Ironic inspects the machine again. A removal does nothing, and the first apply
// after an import only records the triggers. Triggers that are not known yet may change.
func (p *plan) triggered() bool {
	return p.seen.Applied && !p.Triggers.IsNull() && p.Triggers != p.seen.Triggers
}

// inspectsAgain reports whether Ironic inspects the machine again: inspect_triggers change, or the inspection that they have requested has
// not succeeded yet.
func (p *plan) inspectsAgain() bool {
	if p.Has(DoReplace) && (p.mayInspect() || p.seen.Inspected) {
		return true
	}
	return p.triggered() || p.seen.Applied && p.seen.Pending != "" && p.Triggers.Set && p.seen.Pending == p.Triggers.V
}

// refuseTarget refuses to return a node to enroll.
func (p *plan) refuseTarget() bool {
	if p.Target.V != string(GoalEnroll) || p.seen.Target == string(GoalEnroll) || p.seen.Target == "" {
		return false
	}
	p.refuse(decide.At("target_state"), "Node cannot return to enroll", "A node cannot return to state enroll. Leave target_state as it "+
		"is, or destroy the host.")
	return true
}

// refuseRetirement refuses to retire a reserved node, which Ironic refuses while it is available.
func (p *plan) refuseRetirement() bool {
	s := p.seen
	if !p.Retired.V || s.Retired || !states.InPool(s.node()) || s.Instance == "" {
		return false
	}
	p.refuse(decide.At("retired"), "Reserved host cannot be retired",
		fmt.Sprintf("Host %s is available and reserved by %s. Ironic retires such a node only when it is free or deployed. Destroy its "+
			"metal_allocation first, in an apply of its own, or leave retired as it is.", p.Label, s.Instance))
	return true
}

// decideRetirement leaves a node in quarantine alone, and warns if a node that another client has retired should be available.
func (p *plan) decideRetirement() {
	if p.seen.Quarantine != "" && p.seen.Retired && !p.RetiredSet.V {
		p.decideQuarantine()
	}
	p.Forecast.NoRetireReason = isFalse(p.Retired) && !p.ReasonSet // Ironic clears it
	holds := p.Retired.V && p.Target.V == string(states.GoalAvailable) && !p.seen.deployed()
	if holds && p.seen.Quarantine == "" && p.RetiredSet.IsNull() {
		p.warn(decide.At("target_state"), "Host is retired",
			fmt.Sprintf("Another client of Ironic has retired host %s, so it stays manageable and does not become available. Set retired "+
				"= false to make it available again, or retired = true to end this warning.", p.Label))
	}
}

// decideQuarantine keeps a node in quarantine retired, and warns. Only retired = false, or a value that is not known yet, that the
// configuration did not have before returns the node: a host that always says so would return a broken machine to the pool. While the node
// is being undeployed, there is nothing to say.
func (p *plan) decideQuarantine() {
	s, deployed := p.seen, p.seen.deployed()
	if (isFalse(p.RetiredSet) || p.RetiredSet.Unknown) && !s.Retires && !deployed {
		returns := "With retired = false, the apply returns it to use."
		if p.RetiredSet.Unknown {
			returns = "The value of retired is not known yet. If it is false, the apply returns the host to use."
		}
		p.warn(decide.At("retired"), "Host leaves its quarantine", fmt.Sprintf("Host %s is in quarantine: %s. %s", p.Label,
			s.Quarantine, returns))
		return
	}
	p.Forecast.KeepsRetired = true
	p.Retired = decide.Known(true)
	how := "set retired = false"
	if s.Retires {
		how = "apply retired = true, and then retired = false"
	}
	if !deployed {
		p.warn(decide.At("retired"), "Host is in quarantine", fmt.Sprintf("Host %s is in quarantine: %s. It stays retired, and no "+
			"allocation reserves it. To return it, repair it and %s.", p.Label, s.Quarantine, how))
	}
}
