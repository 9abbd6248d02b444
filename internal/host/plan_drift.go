package host

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// HardwareDrift says what becomes of hardware settings that the machine has lost.
type HardwareDrift string

// The values of hardware_drift.
const (
	DriftIgnore HardwareDrift = "ignore" // nothing compares them
	DriftWarn   HardwareDrift = "warn"   // plans name them
	DriftPlan   HardwareDrift = "plan"   // plans set them again
)

// Compares reports whether the settings are compared at all.
func (d HardwareDrift) Compares() bool { return d == DriftWarn || d == DriftPlan }

// drift is what a plan makes of the differences between a machine and its configuration.
type drift struct {
	all      []HardwareDifference
	corrects []HardwareDifference // by this plan
	waits    []HardwareDifference // until Ironic may change the machine
	later    []HardwareDifference // by the next plan
	repeated []HardwareDifference // by none, because they come back
	never    []HardwareDifference // by none, because no apply can
	blocked  []HardwareDifference // by none, because one of never is sent with them
}

// compare opens the hardware settings that the plan applies again, because the machine has lost them.
func (p *plan) compare() {
	var d drift
	mode, before := p.HardwareDrift.V, p.seen.HardwareDrift
	if p.HardwareDrift.Unknown {
		mode = before
	}
	if !mode.Compares() || !p.HardwareKnown || len(p.Hardware.Both(p.seen.OnMachine).Parts()) == 0 {
		return
	}
	last, noted := p.seen.Compared, before.Compares() && p.seen.Compared != nil
	if last == nil {
		if last = p.seen.ComparedNow; last == nil {
			p.ask(AskDrift)
			return
		}
	}
	blocked := slices.ContainsFunc(last.Differences, func(one HardwareDifference) bool { return one.Blocks() && p.Hardware.Has(one) })
	for _, one := range last.Differences {
		if !p.Hardware.Has(one) || one.Part != PartRAID && !p.seen.OnMachine.Has(one) {
			continue // it is configured otherwise now, or applied again anyway
		}
		d.all = append(d.all, one)
		to := &d.corrects
		switch {
		case !one.Correctable():
			to = &d.never
		case mode == DriftWarn:
			continue
		case blocked && one.Part == PartBIOS:
			to = &d.blocked
		case last.WasRepeated(one):
			to = &d.repeated
		case !p.mayCorrect(one.Part):
			to = &d.waits
		case !noted || before != DriftPlan:
			to = &d.later
		}
		*to = append(*to, one)
	}
	p.Drifted = d.corrects
	lost := p.seen
	lost.OnMachine = lost.OnMachine.Without(d.corrects)
	p.Open = openParts(p.Wish, lost)
	p.warnDrift(d, last.At)
}

func (p *plan) mayCorrect(part HardwarePart) bool {
	s := p.seen
	switch {
	case p.Held || p.isOutOfReach():
		return false
	case s.occupied():
		return (p.ServicesActive.V || p.ServicesActive.Unknown) && states.Serviceable(s.State) && !states.InProgress(s.State) &&
			part != PartRAID
	case s.deployed(), s.OutOfService && p.Maintenance.IsNull(), p.Target.V == string(GoalEnroll):
		return false
	}
	return states.Parked(s.State)
}

// warnDrift names all differences of a host in one warning.
func (p *plan) warnDrift(d drift, at time.Time) {
	if len(d.all) == 0 {
		return
	}
	text := fmt.Sprintf("Host %s: %s. That is what Ironic had read by %s.", p.Label, differences(d.all), at.Format(time.RFC3339))
	add := func(some []HardwareDifference, format string, args ...any) {
		if len(some) > 0 {
			text += " " + fmt.Sprintf(format, args...)
		}
	}
	if p.HardwareDrift.V == DriftWarn {
		text += ` No plan is made to correct that, because hardware_drift is "warn".`
	}
	if slices.Contains(p.Open, PartBIOS) && len(d.corrects) == 0 && slices.Contains(partsIn(d.all), PartBIOS) {
		text += " The change of bios_settings sets all of them, because Ironic gets them together."
	}
	add(d.corrects, "The apply sets %s again.", partsOf(d.corrects))
	add(d.later, `The next plan sets %s again, because of hardware_drift = "plan".`, partsOf(d.later))
	add(d.waits, "The host is in state %s%s, so %s does not change now. A later plan sets it again when Ironic may change the machine.%s",
		p.seen.State, p.holds(), partsOf(d.waits), p.serviceHint(partsIn(d.waits)))
	add(d.repeated, "The provider has set %s before, and afterwards Ironic reported the same difference, so no plan sets it again. Write "+
		"into the configuration what the machine reports, or correct the machine.", namesOf(d.repeated))
	add(d.blocked, "Nothing can set %s now, and Ironic gets all of bios_settings together, so no plan sets the others again. Write into "+
		"the configuration what the machine can have, or remove what it cannot.", namesOf(blockingDifference(d.never)))
	for _, one := range d.never {
		if one.Part == PartRAID {
			text += " No plan makes volumes again because of a difference, since that erases data."
			break
		}
	}
	p.warn(decide.At(string(d.all[0].Part)), "Hardware differs from the configuration", text)
}

func differences(all []HardwareDifference) string {
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = d.String()
	}
	return strings.Join(texts, "; ")
}

func partsIn(all []HardwareDifference) (parts []HardwarePart) {
	for _, d := range all {
		if !slices.Contains(parts, d.Part) {
			parts = append(parts, d.Part)
		}
	}
	return parts
}

func partsOf(all []HardwareDifference) string {
	return strings.Join(HardwarePartNames(partsIn(all)), " and ")
}

func blockingDifference(all []HardwareDifference) []HardwareDifference {
	return slices.DeleteFunc(slices.Clone(all), func(one HardwareDifference) bool { return !one.Blocks() })
}

func namesOf(all []HardwareDifference) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}
