package enroll

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// GoalEnroll is a target_state that no walk leads to: every node begins there.
const GoalEnroll states.Goal = "enroll"

const stateEnroll ironic.State = "enroll"

// decideNew decides about a host that Terraform does not have yet. What its configuration says of its preparation needs no warning, except that
// of a machine that OneView users have.
func (p *plan) decideNew() {
	if !p.AnyDriver {
		p.refuse(nil, "No BMC and no driver", "A new metal_host needs bmc, or driver with driver_info, or power_control = \"agent\". Set one of them, so that Ironic can reach the machine. "+
			"If Ironic has a node of the machine already, import that.")
		return
	}
	if p.Target.IsNull() {
		p.Target = decide.Known(string(states.GoalManageable))
		p.Forecast.Target = p.Target.V
	}
	prepared := p.ByAgent || !isFalse(p.PowerManaged)
	p.newHardware(prepared)
	p.stepsOfNew(prepared)
	inspects, cleans, taken := p.mayBeInspected(), p.mayBeCleaned(), false
	if prepared {
		taken = (inspects || p.mayBecomeAvailable()) && p.inUse()
	} else {
		p.Forecast.State = decide.Known(stateEnroll)
		p.notice(WithoutBMC(p.Wish, stateEnroll)...)
	}
	if !taken {
		p.takeOver()
	}
	if (inspects || cleans) && !taken && !isFalse(p.PowerManaged) {
		p.warnNoPort(inspects)
	}
	p.refuseShared()
}

// stepsOfNew adds the steps of a new host. Ironic prepares no machine that it cannot reach.
func (p *plan) stepsOfNew(prepared bool) {
	p.add(Step{Do: DoEnroll})
	if retires := p.RetiredSet; retires.V || retires.Unknown {
		p.add(Step{Do: DoLeavePool})
	}
	if !prepared {
		return
	}
	if p.boots() {
		p.add(Step{Do: DoSetBoot, Goal: states.GoalManageable, Cost: decide.Restart})
	}
	if !p.Power.IsNull() {
		p.add(Step{Do: DoSwitchPower, Power: p.Power.V, Cost: decide.Restart})
	}
	if p.Target.V == string(GoalEnroll) {
		return
	}
	if len(p.Open) > 0 {
		p.add(p.configuration())
	}
	if p.mayInspect() {
		p.add(Step{Do: DoInspect, Cost: decide.Restart})
	}
	p.add(p.walk())
}

// decideExisting decides about a host that Terraform has.
func (p *plan) decideExisting() {
	p.Open = openParts(p.Wish, p.seen)
	p.warnDriver()
	if p.refuseTarget() || p.refuseClass() || p.refuseInspection() || p.refuseRetirement() {
		return
	}
	p.decideRetirement()
	if p.isOutOfReach() {
		p.decideHardware()
		if !p.seen.deployed() {
			p.notice(WithoutBMC(p.Wish, p.seen.State)...)
		}
		return
	}
	p.keepDeployedPower()
	held := p.stepsOfExisting()
	p.decideBoot(held)
	p.warnHeld(held)
	p.warnStray(held)
	if walks := p.Has(DoWalk, DoVerify); walks || p.Has(DoService) {
		p.foreseeWalk(walks)
	}
	leaves := p.decideHardware()
	if p.warnSteps(leaves) {
		p.warnPower()
	}
	if !p.isMoving() && states.Parked(p.seen.State) {
		p.decideProfile()
	}
}

// isMoving reports whether the plan changes the provision state.
func (p *plan) isMoving() bool { return p.Has(DoWalk, DoVerify, DoService) }

// isOutOfReach reports whether Ironic cannot prepare the machine, because it knows no BMC and gets none.
func (p *plan) isOutOfReach() bool {
	return isFalse(p.seen.PowerManaged) && p.PowerManaged == p.seen.PowerManaged && !p.ByAgent
}

// stepsOfExisting adds the steps beyond the settings. It reports that the host is held: that it adds none that the host needs, because metal
// oneview sync has taken it out of service.
func (p *plan) stepsOfExisting() (held bool) {
	s := p.seen
	if s.occupied() {
		if p.ServicesActive && len(liveParts(p.Open)) > 0 && states.Serviceable(s.State) && !p.Held {
			p.add(Step{Do: DoService, Parts: liveParts(p.Open), Cost: decide.Restart})
		}
		return false
	}
	if retires := p.RetiredSet; (retires.V || retires.Unknown) && !s.Retired {
		p.add(Step{Do: DoLeavePool})
	}
	outOfService := s.OutOfService && p.Maintenance.IsNull()
	switch {
	case s.deployed():
		if held = p.returns() && outOfService; p.returns() && !held {
			p.add(p.walk())
		}
	case p.Target.V == string(GoalEnroll):
		if p.verifies() {
			p.add(Step{Do: DoVerify, Goal: states.GoalManageable})
		}
	case outOfService:
		p.stepsOfWalk()
		held = p.Has(DoWalk) || p.switches() || p.boots()
		p.Steps = nil
		return held
	default:
		p.stepsOfWalk()
	}
	p.stepsBeside()
	return held
}

// stepsOfWalk adds the steps that prepare a free host.
func (p *plan) stepsOfWalk() {
	again := p.inspectsAgain()
	switch {
	case again:
		p.add(Step{Do: DoInspectAgain, Cost: decide.Restart})
	case p.mayInspect() && !p.seen.Inspected:
		p.add(Step{Do: DoInspect, Cost: decide.Restart})
	}
	if len(p.Open) > 0 && !p.Held {
		p.add(p.configuration())
	}
	if p.Has(DoInspect, DoInspectAgain, DoConfigure) || !p.settled() {
		p.add(p.walk())
	} else if p.learnsPower() {
		p.add(Step{Do: DoLearnPower, Power: p.restingPower(), Cost: decide.Restart})
	}
}

// stepsBeside adds the steps that do not depend on the way to the goal: boot mode and power.
func (p *plan) stepsBeside() {
	walks := p.Has(DoWalk, DoVerify)
	if p.boots() {
		step := Step{Do: DoSetBoot, Cost: decide.Restart}
		if walks {
			step.Goal = states.GoalManageable
		}
		p.add(step)
	}
	switch {
	case p.switches():
		p.add(Step{Do: DoSwitchPower, Power: p.Power.V, Cost: decide.Restart})
	case walks && p.Power.Set:
		p.add(Step{Do: DoKeepPower, Power: p.Power.V})
	}
}

// walk returns the walk to the goal; if that is not known, to the one that costs more.
func (p *plan) walk() Step {
	step := Step{Do: DoWalk, Goal: p.goals()[0]}
	if p.mayBecomeAvailable() {
		step.Goal = states.GoalAvailable
		if !p.NoClean {
			step.Cost = decide.Clean
		}
	}
	return step
}

// verifies reports whether credentials have arrived for a host that stays in enroll, or could not be verified before.
func (p *plan) verifies() bool {
	s := p.seen
	arrive := isFalse(s.PowerManaged) || s.Unverified || s.Applied && !s.BMC && p.BMC
	return arrive && !isFalse(p.PowerManaged) && s.State == stateEnroll
}

// goals returns the state that the host is to reach, or all that are possible if that is not known yet. It is target_state, except that a
// retired node does not become available.
func (p *plan) goals() []states.Goal {
	target := states.Goal(p.Target.V)
	available := p.Target.Unknown || target == states.GoalAvailable
	switch {
	case available && p.Retired.V:
		return []states.Goal{states.GoalManageable}
	case available && (p.Target.Unknown || p.Retired.Unknown):
		return []states.Goal{states.GoalManageable, states.GoalAvailable}
	}
	return []states.Goal{target}
}

// mayBecomeAvailable reports whether the host is to become available, or may be.
func (p *plan) mayBecomeAvailable() bool { return slices.Contains(p.goals(), states.GoalAvailable) }

// mayInspect reports whether inspect is true or not known yet.
func (p *plan) mayInspect() bool { return p.Inspect.V || p.Inspect.Unknown }

// mayBeInspected reports whether Ironic inspects the machine of a new host.
func (p *plan) mayBeInspected() bool { return p.mayInspect() && p.Target.V != string(GoalEnroll) }

// mayBeCleaned reports whether Ironic cleans the machine on the way to target_state.
func (p *plan) mayBeCleaned() bool { return p.mayBecomeAvailable() && !p.NoClean }

// settled reports whether the host has reached all states that it may have to reach.
func (p *plan) settled() bool {
	return !slices.ContainsFunc(p.goals(), func(goal states.Goal) bool { return !states.Settled(goal, p.seen.State) })
}

// strays reports whether a reserved host rests in another state than the configured one, because another client of Ironic has moved it.
func (p *plan) strays() bool {
	return p.TargetSet && p.Target.V != string(GoalEnroll) && p.seen.Instance != "" && states.Parked(p.seen.State) && !p.settled()
}

// returns reports whether a reserved host may return to the pool. Only an allocation reserves hosts of the pool alone. Any other reservation may
// be for what runs on the machine already.
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
	return p.triggered() || p.seen.Applied && p.seen.Pending != "" && p.Triggers.Set && p.seen.Pending == p.Triggers.V
}

// node returns what the state has of the node.
func (s Seen) node() *ironic.Node {
	return &ironic.Node{ProvisionState: string(s.State), InstanceUUID: s.Instance}
}

// deployed reports whether something runs or may run on the node, or it is reserved for a deployment.
func (s Seen) deployed() bool { return states.Deployed(s.node()) }

// occupied reports whether the node is deployed or being deployed. Its metal_deployment then controls the power.
func (s Seen) occupied() bool { return states.IsOccupied(s.node()) }

// refuseTarget refuses to return a node to enroll.
func (p *plan) refuseTarget() bool {
	if p.Target.V != string(GoalEnroll) || p.seen.Target == string(GoalEnroll) || p.seen.Target == "" {
		return false
	}
	p.refuse(decide.At("target_state"), "Node cannot return to enroll", "A node cannot return to state enroll. Leave target_state as it is, or destroy the host.")
	return true
}

// refuseClass refuses to change the class of a deployed node.
func (p *plan) refuseClass() bool {
	if !p.seen.occupied() || p.seen.Class == "" || p.Class == "" || p.Class == p.seen.Class {
		return false
	}
	p.refuse(decide.At("resource_class"), "Class of a deployed node is fixed", fmt.Sprintf("Host %s is in state %q. Ironic changes the resource class of a node only while nothing is deployed on it. "+
		"Destroy its metal_deployment first, in an apply of its own, or leave resource_class as it is (%q).", p.Label, p.seen.State, p.seen.Class))
	return true
}

// refuseInspection refuses a change of inspect_triggers if Ironic cannot inspect the machine now.
func (p *plan) refuseInspection() bool {
	if p.Triggers.Unknown || !p.triggered() {
		return false
	}
	why := ""
	switch s := p.seen; {
	case s.Instance != "" && !s.occupied():
		why = fmt.Sprintf("is reserved by %s. Ironic inspects a machine only while the node is free. Destroy its metal_allocation first, in an apply of its own", s.Instance)
	case s.deployed():
		why = fmt.Sprintf("is in state %q. Ironic inspects a machine only while nothing is deployed on it. Destroy its metal_deployment first, in an apply of its own", s.State)
	case p.Target.V == string(GoalEnroll):
		why = "has target_state = \"enroll\". Ironic inspects no machine in state enroll. Set target_state to manageable or available"
	case isFalse(p.PowerManaged) && !p.ByAgent:
		why = "has no BMC, so Ironic cannot inspect it. Give it a bmc, or a driver with driver_info"
	default:
		return false
	}
	p.refuse(decide.At("inspect_triggers"), "Host cannot be inspected now", fmt.Sprintf("Host %s %s, or leave inspect_triggers as they are.", p.Label, why))
	return true
}

// foreseeWalk forecasts the values that a walk changes; a service changes the provision state alone. An empty last_error or fault stays empty.
func (p *plan) foreseeWalk(walks bool) {
	p.Forecast.State = decide.Unknown[ironic.State]()
	if !walks {
		return
	}
	p.Forecast.LastError, p.Forecast.Fault = p.seen.LastError, p.seen.Fault
	if p.Power.IsNull() {
		p.Forecast.Power = decide.Unknown[string]()
	}
}

// warnHeld says that the host waits for its server, and so does its power.
func (p *plan) warnHeld(held bool) {
	if !held {
		return
	}
	if p.Power.Set {
		p.Forecast.Power = p.seen.Power
	}
	p.warn(nil, "Host is used by OneView", fmt.Sprintf("metal oneview sync has taken host %s out of service, because a OneView user has its server. "+
		"It stays out of service until the server is free; then metal oneview sync cleans it and makes it available.", p.Label))
}

// warnStray says why a reserved host does not reach its target state.
func (p *plan) warnStray(held bool) {
	if !p.strays() || held || p.Has(DoWalk, DoVerify) {
		return
	}
	why := fmt.Sprintf("Deploying its instance needs state available, so the host stays there. It becomes %s when the reservation ends.", p.goals()[0])
	if !states.InPool(p.seen.node()) {
		why = "That is not an allocation: another client of Ironic may be about to adopt what runs on the machine, so the host stays as it is. If nothing runs on it, make it available with " +
			"`baremetal node provide`, which cleans it, or remove its instance_uuid."
	}
	p.warn(decide.At("target_state"), "Reserved host is not in its target state", fmt.Sprintf("Host %s is %s, and reserved by %s. %s", p.Label, p.seen.State, p.seen.Instance, why))
}

// warnSteps warns of the steps that boot the machine or, if OneView users have it, that the apply does not take them. It reports whether the
// apply does. leaves says that the warning of hardware settings covers the cleaning.
func (p *plan) warnSteps(leaves bool) (does bool) {
	inspects, again := p.Has(DoInspect, DoInspectAgain), p.Has(DoInspectAgain)
	becomes := p.Has(DoWalk) && p.mayBecomeAvailable()
	if (inspects || becomes) && p.inUse() {
		return false
	}
	cleans := becomes && !leaves && p.mayBeCleaned()
	switch {
	case cleans:
		p.warnCleaning(inspects)
	case inspects:
		p.warnInspection(again)
	}
	if cleans || inspects || p.Has(DoConfigure) {
		p.warnNoPort(inspects)
	}
	return true
}

// CleaningSummary is the same for all hosts, so that Terraform folds their warnings into one; and so are the other summaries.
const CleaningSummary = "Cleaning erases data"

// warnCleaning warns of cleaning, and of the inspection before it.
func (p *plan) warnCleaning(inspects bool) {
	becomes := fmt.Sprintf("Host %s becomes available.", p.Label)
	if p.Target.Unknown {
		becomes = fmt.Sprintf("The target_state of host %s is not known yet. It may become available.", p.Label)
	}
	p.warn(decide.At("target_state"), CleaningSummary, fmt.Sprintf("%s Ironic %s it on the way: the machine boots, and loses the data that the site's clean steps erase.", becomes, preparation(inspects, true)))
}

// preparation returns what Ironic does with a machine, such as "inspects and cleans"; "" if nothing.
func preparation(inspects, cleans bool) string {
	var does []string
	if inspects {
		does = append(does, "inspects")
	}
	if cleans {
		does = append(does, "cleans")
	}
	return strings.Join(does, " and ")
}

func (p *plan) warnInspection(again bool) {
	inspects, at, host := "inspects", decide.At("inspect"), p.Label
	if p.Inspect.Unknown || again && p.Triggers.Unknown {
		inspects = "may inspect"
	}
	if again {
		at, host = decide.At("inspect_triggers"), host+" again"
	}
	p.warn(at, "Inspection boots the machine", fmt.Sprintf("Ironic %s host %s. The machine boots for that.", inspects, host))
}

// warnNoPort warns of a host whose ramdisk boots from the network, and that has no port for it. It is called if the ramdisk boots; inspects
// says that an inspection comes first.
func (p *plan) warnNoPort(inspects bool) {
	if p.ByAgent {
		return
	}
	if p.seen.Network == nil {
		p.ask(AskNetwork)
		return
	}
	boot := *p.seen.Network
	boot.Open = inspects && p.seen.OpenPorts
	if lacks := boot.Lacks(); lacks != "" {
		p.warn(decide.At("ports"), "Network boot needs a port", fmt.Sprintf("Host %s boots Ironic's ramdisk from the network (boot interface %s), and %s. Ironic then waits for a ramdisk that never reports, "+
			"30 minutes by default. Name the network card that boots: ports = { \"<MAC address>\" = { pxe_enabled = true } }. "+
			"Ignore this only if the site boots unknown machines into the ramdisk.", p.Label, boot.Interface, lacks))
	}
}

// WithoutBMC warns that Ironic cannot prepare or switch a machine without a BMC in this state, if the configuration demands that and the machine is
// not deployed.
func WithoutBMC(w Wish, s ironic.State) []decide.Notice {
	var missed []string
	if w.Target.V != string(GoalEnroll) && !states.Settled(states.Goal(w.Target.V), s) {
		missed = append(missed, fmt.Sprintf("it stays in state %s and does not become %s", s, cmp.Or(w.Target.V, "what target_state says")))
	}
	if w.Power.Set {
		missed = append(missed, "its power is not switched")
	}
	if len(missed) == 0 {
		return nil
	}
	return []decide.Notice{decide.Warn(nil, "Host without BMC", fmt.Sprintf("Ironic knows no BMC of host %s: %s. Give the host a bmc with address, username and password_wo, a driver with its driver_info, or power_control = \"agent\". "+
		"Until then, Ironic can only enroll the machine; target_state = \"enroll\" without power_state ends this warning.", w.Label, strings.Join(missed, ", and ")))}
}
