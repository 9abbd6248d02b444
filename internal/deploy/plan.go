package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Decide says what an apply of a wish does, and what the plan shows of it. Update, Create and Delete do that and decide nothing again;
// where the plan for the wish applied last is empty, the next plan need not ask.
func Decide(w Wish, s Seen) Plan {
	d := &decision{asked: w, wish: w, was: s.Was, seen: s}
	d.wish.Content = maps.Clone(w.Content)
	var known bool
	switch {
	case w.Destroy:
		d.end()
		return d.plan
	default:
		d.onChange, known = d.inForce()
	}
	switch {
	case !known:
	case w.AdoptOpen:
		d.refuse(decide.At("adopt"), unknownSummary, "adopt decides whether the disks of the machine are written, so the plan must know "+
			"it. Set it to a value that does not depend on a resource.")
	case s.New:
		d.begin()
	default:
		d.change()
	}
	d.plan.Forecast.Wish = d.wish
	slices.SortStableFunc(d.plan.Steps, func(a, b Step) int { return cmp.Compare(a.Do.Phase(), b.Do.Phase()) })
	return d.plan
}

func (d *decision) end() {
	if d.refuseEnd("destroy") || d.refuseLateDisks() {
		return
	}
	d.add(EndOf(d.was))
}

// EndOf returns the step that ends a deployment. The state of a creation that has failed has no on_destroy.
func EndOf(was Wish) Step {
	switch {
	case was.EndsAdoption():
		return Step{Do: DoRelease}
	case was.forgets():
		return Step{Do: DoForget}
	}
	return Step{Do: DoUndeploy, Cost: decide.Wipe}
}

func (d *decision) begin() {
	f := &d.plan.Forecast
	f.Fresh, f.Rebuilds, f.Restarts = true, decide.Known[int64](0), decide.Known[int64](0)
	ports := VIFConnections{Wanted: d.wish.Ports}
	switch {
	case d.wish.Adopt:
		if len(ports.Wanted) > 0 {
			d.add(Step{Do: DoConnect, Ports: ports})
		}
		d.add(Step{Do: DoAdopt})
	case !d.wish.LiveISO.IsNull():
		f.Boot = decide.Known(bootiso.Status{Action: bootiso.None})
		d.add(Step{Do: DoDeploy, Cost: decide.Restart, Ports: ports})
		d.refuseFirstBoot()
	default:
		d.add(Step{Do: DoDeploy, Cost: decide.Wipe, Ports: ports})
	}
	if !d.asked.Rescue.IsNull() {
		d.refuse(decide.At("rescue"), "Nothing to rescue", "This plan makes a new deployment, or replaces one, so there is nothing to "+
			"rescue. Remove rescue, apply, and add it afterwards. To rescue a machine that runs already, import its deployment, or adopt "+
			"it, without rescue first.")
	}
	d.name()
	d.power()
	d.protection()
	d.readiness()
}

func (d *decision) change() {
	d.was, d.records = d.seen.Past.baseline(d.wish, d.seen.Was)
	moves := d.otherNode()
	d.keepUnknown()
	d.keepNode()
	d.keepName()
	if d.plan.Replaces = d.replacedFor(); len(d.plan.Replaces) > 0 {
		d.replace()
		return
	}
	switch {
	case d.seen.HostEnds && moves: // the user may replace the deployment, which this plan of the resource cannot see
		d.warnHostEnd()
	case d.seen.HostEnds:
		d.refuseHostEnd()
		return
	case d.seen.HostLeaves && !moves && !d.wish.Destroy:
		if d.hostLeaves(); d.plan.Refused() {
			return
		}
	}
	d.keep()
	if d.wish.LiveISO.IsNull() {
		d.waitForRescue()
		d.imageOrAdoption()
	} else {
		d.boot()
	}
	d.warnOther()
	d.warnRecorded()
	d.firstTriggers()
	d.rescue()
	d.connect()
	d.name()
	d.power()
	d.protection()
	d.readiness()
	d.refuseFreed()
	d.tellDisks()
	d.assume()
}

func (d *decision) replace() {
	if d.seen.Past.keepsMachine() && states.IsOccupied(nodeIn(d.seen.State)) {
		d.refuseReplacement()
		return
	}
	if d.refuseEnd("replace") || d.refuseLateDisks() {
		return
	}
	d.add(EndOf(d.seen.Was))
	d.begin()
}

// keep forecasts no change of the values that come from Ironic.
func (d *decision) keep() {
	f := &d.plan.Forecast
	f.State, f.LastError, f.Attempts, f.Power = decide.Known(d.seen.State), d.seen.LastError, d.seen.Attempts, d.seen.Power
	f.Rebuilds, f.Restarts = raise(d.seen.Rebuilds, same), raise(d.seen.Restarts, same)
}

// connect connects a machine that keeps running. A machine that is deployed, booted or rebuilt is connected then, after Ironic knows its
// traits: it may choose the network by them.
func (d *decision) connect() {
	if (d.plan.Operates() && !d.wish.Adopt) || d.wish.VIFs == d.was.VIFs {
		return
	}
	c := d.connections()
	if maybe := d.wish.VIFs.Unknown; maybe || len(c.Wanted)+len(c.Unwanted) > 0 {
		d.add(Step{Do: DoConnect, Ports: c, Maybe: maybe})
	}
}

// name gives the instance another name. A machine that is deployed or rebuilt gets it together with what Ironic deploys.
func (d *decision) name() {
	want := d.asked.Name
	if want.IsNull() || want == d.seen.Name || Has(d.plan.Steps, DoDeploy, DoRepeat, DoRebuild) {
		return
	}
	d.add(Step{Do: DoName, Maybe: want.Unknown})
}

// power switches the machine as configured, also after an operation or a rescue, which may have left it in another power state. The first
// apply after an import does not: it records power_state, and the next plan shows the difference.
func (d *decision) power() {
	power, fresh := d.asked.Power, d.plan.Forecast.Fresh
	operates := d.plan.Operates() || Has(d.plan.Steps, DoUnrescue)
	switch {
	case !power.Set, !fresh && (!operates || d.imports()) && power == d.seen.Power:
	case !fresh && d.imports():
		d.warn(decide.At("power_state"), "Power is not switched yet", fmt.Sprintf("Node %s was imported, so this apply does not touch "+
			"the machine. The next plan shows its power state, and its apply switches it %s.", d.seen.Label, power.V))
	case power.V == PowerOff:
		d.add(Step{Do: DoPowerOff, Cost: decide.Restart})
	default:
		d.add(Step{Do: DoPowerOn})
	}
}

// protection ends the protection before everything else, and sets it after almost everything. Another client may have changed it
// since the last read: it is set, or ended, in each apply that touches the machine.
func (d *decision) protection() {
	want := d.asked.Protected
	switch acts := len(d.plan.Steps) > 0; {
	case !want.Set, d.seen.Protected == want.V && !acts:
	case want.V:
		d.add(Step{Do: DoProtect})
	case !d.plan.Forecast.Fresh:
		d.add(Step{Do: DoUnprotect})
	}
}

// readiness checks the machine after everything that starts it, and until a check has passed. The forecast of a plan that starts the
// machine is open, because an interrupted apply of it succeeds without the check.
func (d *decision) readiness() {
	want, ready := d.asked.ReadyCheck, &d.plan.Forecast.Ready
	starts := d.plan.Operates() || Has(d.plan.Steps, DoUnrescue, DoRestart, DoPowerOn)
	switch {
	case want.IsNull():
	case d.away(starts): // null
		d.warnUnchecked()
	case starts, want.Unknown:
		*ready = decide.Unknown[bool]()
		d.add(Step{Do: DoCheck, Maybe: want.Unknown})
	case d.finished, want != d.seen.Was.ReadyCheck, d.seen.Ready != decide.Known(true):
		*ready = decide.Known(true)
		d.add(Step{Do: DoCheck})
		d.warnOff()
	default:
		*ready = d.seen.Ready
	}
}

// away reports whether what is deployed does not run after the apply. starts: the plan starts the machine.
func (d *decision) away(starts bool) bool {
	switch {
	case !d.asked.Rescue.IsNull(), d.asked.Power.V == PowerOff:
		return true
	case starts:
		return false
	}
	return d.plan.Forecast.State.V != stateActive
}

// IgnoresContent reports whether a change of content does nothing, or the plan cannot tell.
func (w Wish) IgnoresContent() bool {
	d := decision{asked: w}
	value, _ := d.inForce()
	return value == ChangeIgnored
}

// Empty reports whether the plan does nothing, says nothing and changes no value of the state.
func (p Plan) Empty(s Seen) bool {
	f := p.Forecast
	values := f.State == decide.Known(s.State) && f.LastError == s.LastError && f.Attempts == s.Attempts && f.Power == s.Power &&
		f.Ready == s.Ready &&
		f.Rebuilds == decide.Known(s.Rebuilds) && f.Restarts == decide.Known(s.Restarts)
	boot := f.Boot.Set == s.Boot.Set && !f.Boot.Unknown && f.Boot.V.Action == s.Boot.V.Action && f.Boot.V.Stale == s.Boot.V.Stale &&
		slices.Equal(f.Boot.V.Obsolete, s.Boot.V.Obsolete)
	return values && boot && len(p.Steps)+len(p.Notices)+len(p.Replaces) == 0
}
