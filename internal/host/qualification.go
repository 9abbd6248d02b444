package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Qualification says how the machine of a host proves that it is fit for work.
type Qualification struct {
	notes.Recipe
	ValidFor    time.Duration
	Quarantines bool // a machine that fails goes into quarantine
	Timeout     time.Duration
}

// Fitness is what a refresh has found of the qualification of a machine. Private state keeps it, so that a saved plan holds.
type Fitness struct {
	Holds     bool      `json:"holds,omitempty"`
	Due       bool      `json:"due,omitempty"` // the machine is in the pool, and this run may take it out of there
	Why       string    `json:"why,omitempty"` // it does not hold, as a clause
	Inspected time.Time `json:"inspected,omitzero"`
	Same      bool      `json:"same,omitempty"` // the inspection then has found the machine that has passed
}

// idleShare is the part of the machines of the pool, and of the limit, that may be qualified again at once: one of so many.
const idleShare = 4

// dues are the machines of the pool which this run may take out of there, with their resource classes.
type dues struct {
	mu      sync.Mutex
	classes map[string]string
}

// SeeFitness returns how a machine stands with its qualification; nil if there is none. before is what was seen before; nil: nothing. It
// costs requests only after an inspection, and when the machine may have to leave the pool.
func SeeFitness(ctx context.Context, site *machine.Site, node *ironic.Node, want decide.Value[Qualification], before *Fitness) *Fitness {
	if !want.Set {
		return nil
	}
	q, now := notes.QualificationOf(node), &Fitness{}
	holds, known := q.Holds(node, nil, want.V.ValidFor, site.Ironic.ServerNow())
	if !known {
		now.Inspected = machine.InspectedAt(node)
		if before != nil && before.Inspected.Equal(now.Inspected) {
			now.Same = before.Same
		} else {
			inventory, err := site.Ironic.Inventory(ctx, node.UUID)
			if err != nil {
				return before // the next refresh asks again
			}
			now.Same = inventory != nil && inventory.System.Serial == q.Serial
		}
		holds = now.Same
	}
	if now.Holds = holds; !holds {
		now.Why = unfitness(q, node, want.V.ValidFor, site.Ironic.ServerNow())
		now.Due = isIdle(node) && isDue(ctx, site, node)
	}
	return now
}

// unfitness says why a qualification does not hold, as a clause.
func unfitness(q *notes.Qualification, node *ironic.Node, valid time.Duration, now time.Time) string {
	switch {
	case q == nil:
		return "it has never been qualified"
	case !q.Begun.IsZero():
		return "a run that was interrupted has begun to qualify it at " + q.Begun.UTC().Format(time.RFC3339)
	case !q.Failed.IsZero():
		return "it has failed its qualification at " + q.Failed.UTC().Format(time.RFC3339) + ": " + q.Words
	case !clock.IsYoung(q.Passed, now, valid):
		return "it has passed its qualification at " + q.Passed.UTC().Format(time.RFC3339) + ", which has lapsed"
	case machine.InspectedAt(node).IsZero():
		return "it has not been inspected since its last inspection failed"
	}
	return "another machine than this one has passed the qualification (serial number " + q.Serial + ")"
}

// isIdle reports whether an allocation may reserve a node now.
func isIdle(n *ironic.Node) bool {
	return states.InPool(n) && n.InstanceUUID == "" && !n.Maintenance && !n.Retired
}

// isDue reports whether this run may take a machine out of the pool to qualify it again.
func isDue(ctx context.Context, site *machine.Site, node *ironic.Node) bool {
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return false
	}
	known := machine.Kept(site, func(*machine.Site) *dues { return &dues{classes: map[string]string{}} })
	known.mu.Lock()
	defer known.mu.Unlock()
	of := 0
	for _, class := range known.classes {
		if class == node.ResourceClass {
			of++
		}
	}
	_, is := known.classes[node.UUID]
	if !is && of < room(all, node.ResourceClass, site.Config().Limit.Max) {
		known.classes[node.UUID], is = node.ResourceClass, true
	}
	return is
}

// room returns how many more machines of a class may leave the pool now: a quarter of those that are idle, and of the limit, and at least
// one, less those that are out of it for their qualification, or because they have failed it and are not in quarantine: the cause may be
// none of theirs.
func room(all map[string]*ironic.Node, class string, most int) int {
	idle, out := 0, 0
	for node := range maps.Values(all) {
		q := notes.QualificationOf(node)
		switch {
		case node.ResourceClass != class:
		case isIdle(node):
			idle++
		case q != nil && !node.Retired && !states.InPool(node) && !states.Deployed(node) && (!q.Begun.IsZero() || !q.Failed.IsZero()):
			out++
		}
	}
	if most == 0 { // no limit
		most = idle + out
	}
	return max(1, min(idle+out, most)/idleShare) - out
}

// qualifies reports whether the machine must be qualified now: it is on its way into the pool, or in it and due. If it is inspected now,
// the apply finds out whether it is the machine that has passed.
func (p *plan) qualifies() bool {
	fit := p.seen.Fitness
	again := fit != nil && fit.Holds && p.inspectsNow()
	switch {
	case p.Qualification.IsNull(), !p.mayBecomeAvailable(), p.isKeptOut():
		return false
	case p.seen.New, p.Has(DoReplace):
		return true
	case p.inPool():
		proof := p.proof()
		differs := proof != nil && len(proof.Differences) > 0 // which leaves the pool alone
		return fit != nil && (fit.Due && !differs || again) && !p.Qualification.Unknown
	}
	return fit == nil || !fit.Holds || again
}

// qualification returns the step. Its steps may erase disks.
func (p *plan) qualification() Step { return Step{Do: DoQualify, Cost: decide.Clean} }

// warnQualification says what the qualification does to the machine, and refuses one that would erase disks that are to be kept.
func (p *plan) warnQualification() {
	for _, s := range p.Qualification.V.Steps {
		p.refuseBurning("steps", s.String())
	}
	if !p.costs(DoQualify) {
		return
	}
	p.checkQualifyingRunbook(p.Qualification.V.Runbook)
	why := ""
	switch fit := p.seen.Fitness; {
	case fit != nil && fit.Why != "":
		why = " That is planned because " + failure.Ended(fit.Why)
	case fit != nil && fit.Holds && p.Replaces == "":
		why = " It does so only if the inspection finds another machine than the one that has passed."
	}
	erases, steps := "", machine.StepNames(p.Qualification.V.Order())
	if w := p.Qualification.V; w.Runbook != "" || p.Qualification.Unknown || len(machine.Erasing(w.Steps)) > 0 {
		erases = " That may erase its disks."
	}
	if p.Qualification.Unknown {
		steps = "steps that are not known yet"
	}
	leaves := ""
	if states.InPool(p.seen.node()) {
		leaves = " It leaves the pool for that time."
	}
	p.warn(decide.At("qualification"), "Machine is qualified", fmt.Sprintf("Host %s: Ironic runs %s on the machine, which boots for "+
		"that.%s%s%s", p.Label, steps, erases, leaves, why))
}

// refuseBurning refuses a step that writes to disks which the host keeps.
func (p *plan) refuseBurning(in, step string) {
	if len(p.Skips.V) == 0 || step != machine.BurnsDisks {
		return
	}
	p.refuse(decide.At("qualification", in), "Burn-in would erase kept disks", fmt.Sprintf("Host %s keeps disks with "+
		"skip_block_devices, and %s writes to all disks of a machine, whatever that says. Remove the step, or skip_block_devices.",
		p.Label, step))
}

// checkQualifyingRunbook refuses a runbook that Ironic would not run on the machine; "": the qualification names its steps.
func (p *plan) checkQualifyingRunbook(name string) {
	if name == "" {
		return
	}
	p.ask(AskQualifying)
	r, at := p.seen.Qualifying, decide.At("qualification", "runbook")
	switch {
	case r == nil, r.Open, r.Hidden != "":
	case r.Found == nil:
		p.refuse(at, "Runbook does not exist", fmt.Sprintf("Ironic has no runbook %s, which is to qualify host %s. Create it, for example "+
			"with metal_runbook, or correct qualification.", name, p.Label))
	case !r.fits() && !p.inspectsNow(): // rules of the inspection may add traits
		p.refuse(at, "Runbook does not fit the host", fmt.Sprintf("Ironic runs runbook %s only on nodes with one of its traits%s, and "+
			"host %s has none of them after this apply. Add one of them to traits of the host, or to those of the runbook.", name,
			inList(r.traits()), p.Label))
	default:
		for _, s := range r.Found.Steps {
			p.refuseBurning("runbook", s.Interface+"."+s.Step)
		}
	}
}

// qualify qualifies the machine, unless a run that the plan does not know has done that. The apply goes on if the machine fails, which then
// stays out of the pool.
func (w *Work) qualify(ctx context.Context) error {
	want := w.Wish.Qualification
	walk, _ := w.Plan.Find(DoWalk)
	if !want.Set || w.staysOut(walk) || states.Deployed(w.Node()) {
		return nil
	}
	waits := func(why string) error {
		w.notices = append(w.notices, decide.Warn(decide.At("qualification"), "Qualification waits", fmt.Sprintf("Host %s stays in the "+
			"pool, because %s. A later apply qualifies it.", w.Wish.Label, why)))
		return nil
	}
	if w.Was != nil && states.InPool(w.Node()) && !w.mayLeave(ctx) {
		return waits("as many other machines are out of it for their qualification as may be at once")
	}
	switch fit := SeeFitness(ctx, w.Machine.Site(), w.Node(), want, nil); {
	case fit == nil:
		return machine.RefusedFor(w.Node(), "its inventory could not be read, which tells whether it is the machine that has passed its "+
			"qualification. Apply again")
	case fit.Holds:
		return nil
	}
	err := w.Machine.Qualify(ctx, want.V.Recipe, want.V.Quarantines, want.V.Timeout)
	if failure.Is(err, machine.KindRefused) && states.Deployed(w.Node()) {
		return waits("it was reserved meanwhile")
	}
	return w.qualified(ctx, err)
}

// endQualification ends a qualification that an interrupted run has begun, before other steps move the node.
func (w *Work) endQualification(ctx context.Context) error {
	want := w.Wish.Qualification
	if q := notes.QualificationOf(w.Node()); q == nil || q.Begun.IsZero() || !want.Set || !w.Plan.Has(DoQualify) {
		return nil
	}
	_, err := w.Machine.EndQualification(ctx, want.V.Quarantines, want.V.Timeout)
	return w.qualified(ctx, err)
}

// qualified takes the error of a qualification: a machine that has failed ends no apply.
func (w *Work) qualified(ctx context.Context, err error) error {
	q := notes.QualificationOf(w.Node())
	err = errors.Join(err, w.EndTemporary(ctx, w.Node(), w.Limit))
	if failure.As(err, failure.KindFailed) == nil || q == nil || q.Failed.IsZero() {
		return err
	}
	w.unfit = err
	return nil
}

// mayLeave reports whether the machine may still leave the pool. Other runs may have taken machines out of the pool since the plan.
func (w *Work) mayLeave(ctx context.Context) bool {
	site := w.Machine.Site()
	all, err := site.Ironic.NodesForPlan(ctx)
	return err == nil && room(all, w.Node().ResourceClass, site.Config().Limit.Max) > 0
}

// sayUnfit says why the machine has failed its qualification, and where it is.
func (w *Work) sayUnfit() []decide.Notice {
	if w.unfit == nil {
		return nil
	}
	failed := *failure.As(w.unfit, failure.KindFailed)
	failed.Advice = "The machine stays out of the pool. The next apply qualifies it again."
	if notes.QuarantineOf(w.Node()) != nil {
		failed.Advice = "The machine is in quarantine: it is retired, and no allocation reserves it. When it is repaired, set retired = " +
			"false on its metal_host (true before, if it is false already), which qualifies it again, or run metal unretire."
	}
	_, detail := failure.Explain("prepare node "+w.Wish.Label, &failed)
	return []decide.Notice{decide.Warn(decide.At("qualification"), "Machine has failed its qualification", detail)}
}
