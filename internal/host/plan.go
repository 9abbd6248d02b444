package host

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Decide returns what a plan of a host shows and its apply does. A plan of a wish with unknown values has all steps that they may
// require.
func Decide(w Wish, s Seen) Plan {
	p := &plan{Wish: w, seen: s}
	switch {
	case w.Ends:
		p.destroy()
		return p.Plan
	case s.New:
		p.warnCredentials()
		p.decideNew()
	default:
		p.warnCredentials()
		p.decideExisting()
	}
	p.guardIdentity()
	p.decideRunbook()
	p.refuseLacking()
	p.decideDisks()
	p.notice(RefusePowerOff(w)...)
	p.Goal = p.goals()[0]
	if len(p.Steps) > 0 && !p.Has(DoWrite) || w.Writes && !s.New {
		p.add(Step{Do: DoWrite})
	}
	p.addProof()
	p.warnQualification()
	p.count()
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(order[a.Do], order[b.Do]) })
	return p.Plan
}

// decideNew decides about a host that Terraform does not have yet. What its configuration says of its preparation needs no warning, except
// that of a machine that OneView users have.
func (p *plan) decideNew() {
	if !p.AnyDriver {
		p.refuse(nil, "No BMC and no driver", "A new metal_host needs bmc, or driver with driver_info, or power_control = \"agent\". Set "+
			"one of them, so that Ironic can reach the machine. If Ironic has a node of the machine already, import that.")
		return
	}
	if p.Target.IsNull() {
		p.Target = decide.Known(string(states.GoalManageable))
		p.Forecast.Target = p.Target.V
	}
	prepared := p.ByAgent || !isFalse(p.PowerManaged)
	if p.refuseConsole(prepared) {
		return
	}
	if p.seen.Missing != "" {
		p.decideAnew(prepared)
		return
	}
	p.newHardware(prepared)
	p.stepsOfNew(prepared)
	inspects, cleans, taken := p.mayBeInspected(), p.mayBeCleaned(), false
	if prepared {
		taken = (inspects || p.mayBecomeAvailable()) && p.inUse()
	} else {
		p.Forecast.State = decide.Known(stateEnroll)
		p.notice(withoutBMC(p.Wish, stateEnroll)...)
	}
	if !taken {
		p.takeOver()
		p.warnNew()
	}
	if (inspects || cleans) && !taken && !isFalse(p.PowerManaged) {
		p.warnNoPort(inspects)
	}
	p.refuseShared()
}

// decideAnew decides about a host whose record is made anew. No record says what was done to the machine since Terraform has seen it, so
// the apply only verifies its BMC; the plan after that prepares the machine, and says so.
func (p *plan) decideAnew(prepared bool) {
	p.Forecast.Restores = p.seen.Restores + 1
	p.Open = openParts(p.Wish, p.seen)
	p.stepsOfNew(prepared)
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Cost > decide.Free || s.Do == DoWalk })
	does := "Nothing on the machine changes."
	if prepared && p.Target.V != string(GoalEnroll) {
		p.add(Step{Do: DoVerify, Goal: states.GoalManageable})
		does = "The machine is not touched, and its node stays manageable: something may have been installed since. The next plan " +
			"prepares it for its target_state, and says what that erases. If something runs on it, adopt it then, with target_state = " +
			"\"manageable\"."
	}
	if p.Forecast.Pending = decide.Known(p.Open); !p.HardwareKnown {
		p.Forecast.Pending = decide.Unknown[[]HardwarePart]()
	}
	p.warn(nil, "Lost record is made anew", fmt.Sprintf("Ironic has no record of host %s, which was %s when Terraform last saw it. It is "+
		"enrolled again with the same UUID. %s", p.Label, p.seen.Missing, does))
	p.refuseShared()
}

// Reaches returns the state that the apply of a plan reaches, which is the target_state, unless a record is made anew.
func (p Plan) Reaches(target string) string {
	if p.Has(DoEnroll) && p.Has(DoVerify) {
		return string(states.GoalManageable)
	}
	walk, _ := p.Find(DoWalk)
	if target == string(states.GoalAvailable) && p.Goal == states.GoalManageable && walk.Goal != states.GoalAvailable {
		return string(p.Goal)
	}
	return target
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
	if p.setsConsole() {
		p.add(p.console(p.Target.V != string(GoalEnroll)))
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
	if p.qualifies() {
		p.add(p.qualification())
	}
	p.add(p.walk())
}

// decideExisting decides about a host that Terraform has.
func (p *plan) decideExisting() {
	if p.decideReplaced() {
		return
	}
	p.Open = openParts(p.Wish, p.seen)
	p.decideDriver()
	if p.refuseTarget() || p.refuseClass() || p.refuseInspection() || p.refuseRetirement() || p.refuseConsole(!p.isOutOfReach()) {
		return
	}
	p.decideRetirement()
	p.compare()
	p.decideExpected()
	if p.isOutOfReach() {
		p.decideHardware()
		if !p.seen.deployed() {
			p.notice(withoutBMC(p.Wish, p.seen.State)...)
		}
		return
	}
	p.keepDeployedPower()
	held := p.stepsOfExisting()
	p.decideBoot(held)
	p.decideConsole()
	if p.learnsPower() && !held {
		p.add(Step{Do: DoLearnPower, Power: p.restingPower(), Cost: decide.Restart})
	}
	p.warnHeld(held)
	p.warnStray(held)
	if walks := p.Has(DoWalk, DoVerify); walks || p.Has(DoService) {
		p.foreseeWalk(walks)
	}
	leaves := p.decideHardware()
	if p.warnSteps(leaves) {
		p.warnPower()
	}
	p.foreseeConsole()
	if !p.isMoving() && states.Parked(p.seen.State) {
		p.decideProfile()
	}
}

func (p *plan) isMoving() bool { return p.Has(DoWalk, DoVerify, DoService) }

// isOutOfReach reports whether Ironic cannot prepare the machine, because it knows no BMC and gets none.
func (p *plan) isOutOfReach() bool {
	return isFalse(p.seen.PowerManaged) && p.PowerManaged == p.seen.PowerManaged && !p.ByAgent
}

// stepsOfExisting adds the steps beyond the settings. It reports that the host is held: that it adds none that the host needs, because
// metal oneview sync has taken it out of service.
func (p *plan) stepsOfExisting() (held bool) {
	s := p.seen
	if s.occupied() {
		if (p.ServicesActive.V || p.ServicesActive.Unknown) && len(liveParts(p.Open)) > 0 && states.Serviceable(s.State) && !p.Held {
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
		p.add(p.inspection(DoInspectAgain))
	case p.mayInspect() && !p.seen.Inspected:
		p.add(p.inspection(DoInspect))
	}
	if len(p.Open) > 0 && !p.Held {
		p.add(p.configuration())
	}
	if p.qualifies() {
		p.add(p.qualification())
	}
	replaces := p.Has(DoReplace) && p.seen.State == nodes.Manageable
	if p.Has(DoInspect, DoInspectAgain, DoConfigure, DoQualify) || replaces || !p.settled() {
		p.add(p.walk())
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

// inspection returns a step that inspects the machine. It costs nothing if Ironic is inspecting the machine already.
func (p *plan) inspection(do Action) Step {
	if states.BeingInspected(p.seen.State) {
		return Step{Do: do}
	}
	return Step{Do: do, Cost: decide.Restart}
}

// walk returns the walk to the goal; if that is not known, to the one that costs more. It does not clean a machine that Ironic cleans
// already, unless a step before takes the machine away from that.
func (p *plan) walk() Step {
	step := Step{Do: DoWalk, Goal: p.goals()[0]}
	if p.mayBecomeAvailable() {
		step.Goal, step.Proves = states.GoalAvailable, p.proves()
		waits := p.seen.Settled || p.seen.Coming && !p.Has(DoInspect, DoInspectAgain, DoConfigure, DoQualify) && len(p.givenUp()) == 0
		if !waits && !isFalse(p.AutomatedClean) {
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

// warnSteps warns of the steps that boot the machine or, if OneView users have it, that the apply does not take them. It reports whether
// the apply does. leaves says that the warning of hardware settings covers the cleaning.
func (p *plan) warnSteps(leaves bool) (does bool) {
	inspects, again := p.costs(DoInspect, DoInspectAgain), p.costs(DoInspectAgain)
	becomes := p.Has(DoWalk) && p.mayBecomeAvailable()
	if (inspects || becomes) && p.inUse() {
		return false
	}
	cleans := !leaves && p.costs(DoWalk)
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

// count forecasts cleanings. A value that is not known yet may change what is done to the machine, and Terraform accepts no other number
// then.
func (p *plan) count() {
	switch {
	case p.seen.New && p.seen.Missing == "":
		p.Forecast.Cleanings = p.cleaningsOfNew()
	case !slices.ContainsFunc(p.Steps, Step.counts):
		p.Forecast.Cleanings = decide.Known(p.seen.Cleanings)
	case p.isOpen():
		p.Forecast.Cleanings = decide.Unknown[int64]()
	default:
		p.Forecast.Cleanings = decide.Known(p.seen.Cleanings + 1)
	}
}

// cleaningsOfNew returns how often a new host is cleaned on the way to its target state, also if a killed run has had it cleaned by the
// time of the apply.
func (p *plan) cleaningsOfNew() decide.Value[int64] {
	walk, walks := p.Find(DoWalk)
	switch {
	case !walks || walk.Goal != states.GoalAvailable || isFalse(p.AutomatedClean) && !p.Has(DoQualify):
		return decide.Known[int64](0)
	case p.Target.Unknown || p.AutomatedClean.Unknown || p.Retired.Unknown:
		return decide.Unknown[int64]()
	}
	return decide.Known[int64](1)
}
