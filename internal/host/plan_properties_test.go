package host_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// provisionStates are the provision states of Ironic in which a refresh may find a node.
var provisionStates = []ironic.State{
	"enroll", "verifying", "manageable", "available", "active", "deploying", "wait call-back", "deploy complete", "rebuild",
	"deploy failed", "deploy hold", "deleting",
	"deleted", "error", "cleaning", "clean wait", "clean failed", "clean hold", "inspecting", "inspect wait", "inspect failed", "adopting",
	"adopt failed", "rescuing",
	"rescue wait", "rescue", "rescue failed", "unrescuing", "unrescue failed", "servicing", "service wait", "service failed",
	"service hold",
}

// runs is how many random hosts a property is tested on, in each state.
const runs = 400

// pick returns one of some values at random.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// anyWish is a random wish; each of its values may be unknown.
func anyWish(r *rand.Rand) host.Wish {
	flags := func() decide.Value[bool] {
		return pick(r, decide.Value[bool]{}, decide.Known(true), decide.Known(false), decide.Unknown[bool]())
	}
	texts := func(values ...string) decide.Value[string] {
		if r.IntN(4) == 0 {
			return decide.Unknown[string]()
		}
		if r.IntN(3) == 0 {
			return decide.Value[string]{}
		}
		return decide.Known(pick(r, values...))
	}
	w := host.Wish{
		Label: "r1", AnyDriver: true, Driver: decide.Known("redfish"), AddressAt: decide.At("driver"), HardwareKnown: true,
		BMC: pick(r, true, false), PowerManaged: pick(r, decide.Known(true), decide.Known(false), decide.Unknown[bool]()),
		ByAgent: r.IntN(8) == 0,
		Target:  decide.Known(pick(r, "enroll", "manageable", "available")), TargetSet: pick(r, true, false), Inspect: flags(),
		Triggers: texts("a", "b"),
		Replaced: pick(r, decide.Value[host.Replaced]{}, replacedOf("machine:1"), replacedOf("machine:2"), replacedOf("mainboard:2"),
			decide.Unknown[host.Replaced]()),
		Power: texts("on", "off"), NeverOff: r.IntN(8) == 0, AutomatedClean: flags(), BootMode: texts("uefi", "bios"),
		SecureBoot: flags(),
		Console:    texts(host.ConsoleOn, host.ConsoleOff), ConsoleMoves: r.IntN(6) == 0,
		Maintenance: flags(), RetiredSet: flags(), ReasonSet: pick(r, true, false), ServicesActive: flags(),
		Hardware: hardwareOf(pick(r, "", "bios", "raid!", "bios,firmware", "raid,bios")),
		HardwareDrift: pick(r, decide.Value[host.HardwareDrift]{}, decide.Known(host.DriftIgnore), decide.Known(host.DriftWarn),
			decide.Known(host.DriftPlan), decide.Unknown[host.HardwareDrift]()),
		Expected: pick(r, decide.Value[hardware.Model]{}, expected("a DIMM more"), expected("as it is"), decide.Unknown[hardware.Model]()),
	}
	if r.IntN(4) == 0 {
		w.Target, w.TargetSet = decide.Unknown[string](), true
	}
	w.Held = w.Maintenance.V
	if w.NeverOff && w.Power.V == "off" {
		w.Power = decide.Known("on")
	}
	if w.ByAgent {
		w.BMC, w.PowerManaged, w.Power = false, decide.Known(false), decide.Value[string]{}
	}
	return w
}

// anySeen is a random host in a state.
func anySeen(r *rand.Rand, state ironic.State) host.Seen {
	s := host.Seen{
		State: state, Target: pick(r, "enroll", "manageable", "available"), Power: pick(r, decide.Value[string]{}, decide.Known("on"),
			decide.Known("off")),
		PowerManaged: decide.Known(r.IntN(5) > 0), Retired: r.IntN(5) == 0, BMC: pick(r, true, false), Driver: "redfish",
		OutOfService: r.IntN(8) == 0,
		BootMode:     pick(r, decide.Value[string]{}, decide.Known("uefi")), Triggers: pick(r, decide.Value[string]{}, decide.Known("a")),
		Console:  pick(r, decide.Value[string]{}, decide.Known(host.ConsoleOn), decide.Known(host.ConsoleOff)),
		Replaced: pick(r, decide.Value[host.Replaced]{}, replacedOf("machine:1"), replacedOf("mainboard:2")),
		Hardware: hardwareOf(pick(r, "", "bios", "raid")), Cleanings: r.Int64N(3),
		Notes: host.Notes{
			Applied: r.IntN(6) > 0, Retires: pick(r, true, false), Powers: pick(r, nil, []string{"on"}), Inspected: pick(r, true, false),
			Pending:    pick(r, "", "", "a"),
			Coming:     slices.Contains([]ironic.State{"deleting", "cleaning", "clean wait"}, state) && r.IntN(3) > 0,
			Unverified: r.IntN(6) == 0, OnMachine: hardwareOf(pick(r, "", "bios", "raid")), Quarantine: pick(r, "", "", "", "broken"),
		},
	}
	if s.HardwareDrift = pick(r, host.DriftIgnore, host.DriftWarn, host.DriftPlan); s.HardwareDrift != host.DriftIgnore {
		s.Compared = differs(pick(r, "nothing", "bios", "bios", "read-only", "raid", "bios,firmware", "bios,gone"))
		if r.IntN(4) == 0 {
			s.Compared.Repeated = s.Compared.Differences
		}
	}
	s.Proof = pick(r, nil, proofOf(expected("a DIMM more")), proofOf(expected("as it is")))
	if r.IntN(3) == 0 {
		s.Instance, s.Allocated = "i1", pick(r, true, false)
	}
	return s
}

// moved is the address of a host with the driver and the interfaces of its configuration.
const moved = "moved"

// settle completes a wish as the resource does: what the configuration omits stays as it is, except that it ends what was configured
// before.
func settle(w host.Wish, s host.Seen) host.Wish {
	w.Retired = w.RetiredSet
	if w.RetiredSet.IsNull() {
		w.Retired = decide.Known(s.Retired && !s.Retires)
	}
	w.ConsoleMoves = w.ConsoleMoves && s.Address != moved
	if !w.TargetSet && s.Target != "" {
		w.Target = decide.Known(s.Target)
	}
	return w
}

// known resolves what a wish does not know yet, at random.
func known(r *rand.Rand, w host.Wish) host.Wish {
	flag := func(v *decide.Value[bool]) {
		if v.Unknown {
			*v = pick(r, decide.Value[bool]{}, decide.Known(true), decide.Known(false))
		}
	}
	text := func(v *decide.Value[string], values ...string) {
		if v.Unknown {
			*v = decide.Known(pick(r, values...))
		}
	}
	text(&w.Target, "manageable", "available")
	text(&w.Triggers, "a", "b")
	text(&w.Power, "on", "off")
	text(&w.BootMode, "uefi", "bios")
	text(&w.Console, host.ConsoleOn, host.ConsoleOff)
	if w.PowerManaged.Unknown {
		w.PowerManaged = decide.Known(pick(r, true, false))
	}
	for _, v := range []*decide.Value[bool]{
		&w.Inspect, &w.SecureBoot, &w.Maintenance, &w.RetiredSet, &w.AutomatedClean,
		&w.ServicesActive,
	} {
		flag(v)
	}
	if w.Expected.Unknown {
		w.Expected = pick(r, decide.Value[hardware.Model]{}, expected("a DIMM more"), expected("as it is"))
	}
	if w.HardwareDrift.Unknown {
		w.HardwareDrift = decide.Known(pick(r, host.DriftIgnore, host.DriftWarn, host.DriftPlan))
	}
	w.Held = w.Held || w.Maintenance.V
	if w.NeverOff && w.Power.V == "off" {
		w.Power = decide.Known("on")
	}
	return w
}

// every calls a test with random wishes and hosts in every state.
func every(t *testing.T, test func(r *rand.Rand, w host.Wish, s host.Seen) bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(24, 11))
	for _, state := range provisionStates {
		for run := range runs {
			w, s := anyWish(r), anySeen(r, state)
			if run%3 == 0 { // its hardware was configured
				s.Hardware, s.OnMachine, s.Instance = w.Hardware, w.Hardware, ""
			}
			if !test(r, settle(w, s), s) {
				return
			}
		}
	}
}

// refused reports whether a plan fails.
func refused(p host.Plan) bool {
	return slices.ContainsFunc(p.Notices, func(n decide.Notice) bool { return n.Severity == decide.Refusal })
}

// The notices that announce a step which restarts, cleans or wipes; any of them does.
func announcements(step host.Step) []string {
	switch step.Do { //nolint:exhaustive // the others leave the machine alone
	case host.DoReplace:
		return []string{"Replaced machine is undeployed"}
	case host.DoSetBoot:
		return []string{"Machine may restart"}
	case host.DoConfigure:
		return []string{"Hardware change restarts the machine", "Host leaves the pool"}
	case host.DoService:
		return []string{"Deployed machine restarts"}
	case host.DoInspect, host.DoInspectAgain:
		return []string{"Inspection boots the machine", "Cleaning erases data"}
	case host.DoWalk:
		return []string{"Cleaning erases data", "Host leaves the pool"}
	case host.DoSwitchPower, host.DoLearnPower:
		return []string{"Power is switched"}
	}
	return nil
}

// Whatever restarts, cleans or wipes a host that exists has its notice, and no such notice is without its step.
func TestDecide_announcesWhatTouchesTheMachine(t *testing.T) {
	t.Parallel()
	every(t, func(_ *rand.Rand, w host.Wish, s host.Seen) bool {
		p := host.Decide(w, s)
		if refused(p) {
			return true
		}
		says := said(p)
		announced := map[string]bool{}
		for _, step := range p.Steps {
			found := step.Cost == decide.Free
			for _, summary := range announcements(step) {
				announced[summary] = true
				found = found || strings.Contains(says, summary)
			}
			if !found || step.Cost == decide.Wipe && step.Do != host.DoReplace && !strings.Contains(says, "All RAID volumes are deleted") {
				t.Errorf("nothing announces %q:\n%s", step.Do, describe(w, s, p))
			}
		}
		if strings.Contains(says, "volumes are deleted") && !slices.ContainsFunc(p.Steps, func(step host.Step) bool {
			return step.Cost == decide.Wipe && step.Do != host.DoReplace
		}) {
			t.Errorf("no step deletes volumes:\n%s", describe(w, s, p))
		}
		for _, do := range []host.Action{
			host.DoSetBoot, host.DoConfigure, host.DoService, host.DoInspect, host.DoWalk,
			host.DoSwitchPower,
		} {
			for _, summary := range announcements(host.Step{Do: do, Cost: decide.Clean}) {
				if strings.Contains(says, summary) && !announced[summary] {
					t.Errorf("%q is without a step:\n%s", summary, describe(w, s, p))
				}
			}
		}
		return !t.Failed()
	})
}

// A plan raises cleanings by one if Ironic boots, restarts, configures or cleans a host that exists, and does not otherwise. Only while a
// value is not known, the number is not known.
func TestDecide_countsWhatTouchesTheMachine(t *testing.T) {
	t.Parallel()
	every(t, func(r *rand.Rand, w host.Wish, s host.Seen) bool {
		if r.IntN(2) == 0 {
			w = settle(known(r, w), s)
		}
		p := host.Decide(w, s)
		touches := slices.ContainsFunc(p.Steps, func(step host.Step) bool {
			return step.Cost > decide.Free && step.Do != host.DoSwitchPower && step.Do != host.DoLearnPower
		})
		raised := decide.Known(s.Cleanings + 1)
		switch now := p.Forecast.Cleanings; {
		case !touches && now != decide.Known(s.Cleanings):
			t.Errorf("cleanings %+v, and nothing touches the machine:\n%s", now, describe(w, s, p))
		case touches && now != raised && (now.Set || reflect.DeepEqual(w, settle(known(r, w), s))):
			t.Errorf("cleanings %+v after %d:\n%s", now, s.Cleanings, describe(w, s, p))
		}
		return !t.Failed()
	})
}

// What becomes known between plan and apply never adds a step that restarts, cleans or wipes.
func TestDecide_moreKnownValuesAddNoHarm(t *testing.T) {
	t.Parallel()
	every(t, func(r *rand.Rand, w host.Wish, s host.Seen) bool {
		before := host.Decide(w, s)
		then := settle(known(r, w), s)
		after := host.Decide(then, s)
		if refused(before) || refused(after) {
			return true
		}
		if was := before.Forecast.Cleanings; was.Set && after.Forecast.Cleanings != was {
			t.Errorf("cleanings were planned as %d:\n%s\nknown: %s", was.V, describe(w, s, before), describe(then, s, after))
			return false
		}
		for _, step := range after.Steps {
			same, planned := before.Find(step.Do)
			if step.Do == host.DoInspect && !planned {
				same, planned = before.Find(host.DoInspectAgain)
			}
			if step.Do == host.DoLearnPower && before.Has(host.DoWalk) {
				continue // the walk does that at its end
			}
			if step.Cost > decide.Free && (!planned || same.Cost < step.Cost) {
				t.Errorf("%s is new:\n%s\nknown: %s", step.Do, describe(w, s, before), describe(then, s, after))
				return false
			}
		}
		return true
	})
}

// do returns the host after a step of an apply, as the next refresh sees it.
func do(w host.Wish, s host.Seen, p host.Plan, step host.Step) host.Seen {
	leave := func() {
		if states.InPool(&ironic.Node{ProvisionState: string(s.State)}) {
			s.State = "manageable"
		}
	}
	switch step.Do {
	case host.DoEnroll:
		s = host.Seen{
			State: "enroll", PowerManaged: decide.Known(!w.ByAgent && (w.PowerManaged.V || w.PowerManaged.Unknown)),
			Driver: w.Driver.V,
		}
	case host.DoWrite:
		imported := !s.Applied
		s.Applied, s.Retires, s.Hardware, s.Triggers, s.Target, s.BMC = true, !w.RetiredSet.IsNull(), w.Hardware, w.Triggers,
			w.Target.V, w.BMC
		if s.Target == "" {
			s.Target = p.Forecast.Target
		}
		s.Powers = nil
		if w.Power.Set {
			s.Powers = []string{w.Power.V}
		}
		if w.PowerManaged != s.PowerManaged {
			s.PowerManaged = w.PowerManaged
			if w.PowerManaged.V && s.Power.IsNull() { // Ironic asks the BMC every minute
				s.Power = decide.Known("off")
			}
		}
		if !p.Forecast.KeepsRetired {
			if s.Retired = w.Retired.V; w.RetiredSet.Set {
				s.Quarantine = ""
			}
		}
		if p.Has(host.DoInspectAgain) {
			s.Pending = w.Triggers.V
		} else if imported || w.Triggers.IsNull() {
			s.Pending = ""
		}
		s.Address, s.Replaced, s.Replacing = moved, w.Replaced, nil
		if p.Has(host.DoReplace) {
			step, _ := p.Find(host.DoReplace)
			s.Replacing = &host.Replacing{Replaced: w.Replaced.V, Instance: step.Instance}
		}
		s.OutOfService = s.OutOfService && w.Maintenance.IsNull()
		s.Unverified = p.Has(host.DoVerify)
	case host.DoLeavePool:
		leave()
	case host.DoReplace:
		if states.IsOccupied(&ironic.Node{ProvisionState: string(s.State)}) {
			s.State, s.Instance, s.Allocated = "available", "", false
		} else {
			leave()
		}
		s.OnMachine, s.Compared = host.Hardware{}, nil
	case host.DoSetBoot:
		s.BootMode, s.SecureBoot = w.BootMode, w.SecureBoot
		if step.Goal != "" && s.State == "enroll" {
			s.State = ironic.State(step.Goal)
		}
	case host.DoCloseConsole:
		s.Console = decide.Known(host.ConsoleOff)
	case host.DoSetConsole:
		s.Console = w.Console
		if step.Goal != "" && s.State == "enroll" {
			s.State = ironic.State(step.Goal)
		}
	case host.DoConfigure, host.DoService:
		s.OnMachine = w.Hardware.Applied(slices.DeleteFunc(slices.Clone(p.Open), func(part host.HardwarePart) bool {
			return slices.Contains(step.Parts, part)
		}), s.OnMachine)
		leave()
	case host.DoInspect, host.DoInspectAgain:
		s.Inspected, s.Pending = true, ""
		leave()
	case host.DoVerify:
		s.State, s.Unverified = "manageable", false
	case host.DoProve:
		s.Proof = proofOf(w.Expected)
	case host.DoWalk:
		kept := step.Proves && s.Proof != nil && len(s.Proof.Differences) > 0 &&
			!states.InPool(&ironic.Node{ProvisionState: string(s.State)})
		s.Coming, s.State = false, ironic.State(step.Goal)
		if kept {
			s.State = "manageable"
		}
		if !s.Power.Set && s.PowerManaged.V {
			s.Power = decide.Known("off")
		}
	case host.DoLearnPower, host.DoSwitchPower, host.DoKeepPower:
		s.Power = decide.Known(step.Power)
	case host.DoEndTemporary, host.DoRemove:
	}
	if step.Do == p.Steps[len(p.Steps)-1].Do {
		s.Replacing = nil
	}
	return s
}

// compared returns the host after the comparison at the end of an apply. A BIOS may have put its settings back.
func compared(r *rand.Rand, w host.Wish, s host.Seen, p host.Plan) host.Seen {
	s.HardwareDrift, s.Proof = w.HardwareDrift.V, proofOf(w.Expected)
	if !s.HardwareDrift.Compares() || s.Compared == nil {
		s.Compared = nil
		return s
	}
	now := &host.HardwareComparison{Differences: s.Compared.Differences, Repeated: s.Compared.Repeated}
	if p.Has(host.DoConfigure, host.DoService) && r.IntN(2) == 0 {
		now.Differences = nil
	} else if p.Has(host.DoConfigure, host.DoService) {
		now.Repeat(p.Drifted)
	}
	s.Compared = now
	return s
}

// expected is what a host expects of a machine: "as it is", or "a DIMM more".
func expected(text string) decide.Value[hardware.Model] {
	return decide.Known(hardware.Model{MemoryMB: map[string]int64{"as it is": 131072, "a DIMM more": 147456}[text]})
}

// proofOf is what a comparison with that finds; nil: nothing is compared.
func proofOf(want decide.Value[hardware.Model]) *host.Proof {
	if !want.Set {
		return nil
	}
	p := &host.Proof{Of: host.Fingerprint(map[string]string{"": want.V.String()}), Known: true}
	for _, d := range want.V.Differences(hardware.Machine{Model: hardware.Model{MemoryMB: 131072}}) {
		p.Differences = append(p.Differences, d.Text)
	}
	return p
}

// isDone reports whether a plan has nothing to do.
func isDone(p host.Plan) bool { return len(p.Steps) == 0 }

// After an apply nothing is left to do, for every state; also after one that was killed after any step, and the one after it.
func TestDecide_isEmptyAfterApply(t *testing.T) {
	t.Parallel()
	every(t, func(r *rand.Rand, w host.Wish, s host.Seen) bool {
		w = settle(known(r, w), s)
		if r.IntN(4) == 0 {
			s = host.Seen{New: true}
			w.Retired = w.RetiredSet
		}
		first := host.Decide(w, s)
		if refused(first) {
			return true
		}
		for killed := 0; killed <= len(first.Steps); killed++ {
			now := s
			for _, step := range first.Steps[:killed] {
				now = do(w, now, first, step)
			}
			if killed < 2 && s.New {
				continue // Terraform has no host yet
			}
			next := settle(w, now)
			then := host.Decide(next, now)
			for _, step := range then.Steps {
				now = do(next, now, then, step)
			}
			now = compared(r, next, now, then)
			if first := host.Decide(settle(w, now), now); len(first.Drifted) > 0 && !refused(first) { // hardware_drift is new
				for _, step := range first.Steps {
					now = do(settle(w, now), now, first, step)
				}
				now = compared(r, settle(w, now), now, first)
			}
			if last := host.Decide(settle(w, now), now); !refused(then) && !isDone(last) {
				t.Errorf("killed after %d of %s\nthen %s\nstill\n%s", killed, describe(w, s, first), words(then),
					describe(settle(w, now), now, last))
				return false
			}
		}
		return true
	})
}

// A host that is as configured has no step, whatever its state.
func TestDecide_unchangedWishDoesNothing(t *testing.T) {
	t.Parallel()
	every(t, func(r *rand.Rand, w host.Wish, s host.Seen) bool {
		w = settle(known(r, w), s)
		first := host.Decide(w, s)
		if refused(first) {
			return true
		}
		for _, step := range first.Steps {
			s = do(w, s, first, step)
		}
		s = compared(r, w, s, first)
		if again := host.Decide(settle(w, s), s); len(again.Drifted) > 0 && !refused(again) { // hardware_drift is new
			for _, step := range again.Steps {
				s = do(w, s, again, step)
			}
			s = compared(r, w, s, again)
		}
		for range 3 {
			if p := host.Decide(settle(w, s), s); !refused(p) && !isDone(p) {
				t.Errorf("an unchanged host has steps:\n%s", describe(w, s, p))
				return false
			}
			s.LastError = !s.LastError
		}
		return true
	})
}

// A plan corrects a difference only if hardware_drift says so in the state too, if it has not done that before, and in a step of its own.
func TestDecide_correctsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	corrected := 0
	every(t, func(r *rand.Rand, w host.Wish, s host.Seen) bool {
		if r.IntN(2) == 0 {
			w.Hardware = hardwareOf("bios,firmware")
			s.OnMachine, s.HardwareDrift = w.Hardware, host.DriftPlan
			s.Compared = differs("bios,firmware")
			s.Compared.Repeated = pick(r, nil, s.Compared.Differences[:1])
		}
		p := host.Decide(w, s)
		if len(p.Drifted) == 0 || refused(p) {
			return true
		}
		corrected++
		may := s.HardwareDrift == host.DriftPlan && (w.HardwareDrift.Unknown || w.HardwareDrift.V == host.DriftPlan)
		for _, d := range p.Drifted {
			step, has := p.Find(host.DoConfigure)
			if !has {
				step, has = p.Find(host.DoService)
			}
			may = may && d.Correctable() && !s.Compared.WasRepeated(d) && has && slices.Contains(step.Parts, d.Part)
		}
		if !may || !strings.Contains(said(p), "Hardware differs from the configuration") {
			t.Errorf("%v is corrected:\n%s", p.Drifted, describe(w, s, p))
		}
		return !t.Failed()
	})
	if corrected < 100 {
		t.Errorf("only %d plans have corrected a difference", corrected)
	}
}

// What is not known yet is not changed: a plan that is certain to boot, configure or clean the machine is so, too, if what it does not know
// turns out to be as in the state.
func TestDecide_knowingLessNeverDoesMore(t *testing.T) {
	t.Parallel()
	for n, state := range provisionStates {
		r := rand.New(rand.NewPCG(uint64(n), 7))
		for range runs {
			s := anySeen(r, state)
			less := settle(anyWish(r), s)
			more := less
			for _, v := range []struct{ open, was *decide.Value[string] }{
				{&more.Triggers, &s.Triggers}, {&more.BootMode, &s.BootMode}, {&more.Console, &s.Console}, {&more.Power, &s.Power},
			} {
				if v.open.Unknown {
					*v.open = *v.was
				}
			}
			if more.Target.Unknown {
				more.Target = decide.Known(s.Target)
			}
			before, after := host.Decide(less, s), host.Decide(more, s)
			certain := func(p host.Plan) bool { return p.Forecast.Cleanings.Set && p.Forecast.Cleanings.V > s.Cleanings }
			if certain(before) && !certain(after) && !decide.Refused(after.Notices) && !after.Forecast.Cleanings.Unknown {
				t.Fatalf("state %s: with less known, the plan has %v, and else %v\n%+v\n%+v", state, before.Steps, after.Steps, less, s)
			}
		}
	}
}
