package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// dues are the machines of the pool which this run may take out of there.
type dues struct {
	mu  sync.Mutex
	ids map[string]bool
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
		} else if inventory, err := site.Ironic.Inventory(ctx, node.UUID); err == nil && inventory != nil {
			now.Same, _ = q.Holds(node, inventory, want.V.ValidFor, site.Ironic.ServerNow())
		}
		holds = now.Same
	}
	if now.Holds = holds; !holds {
		now.Why = unfitness(q, node, want.V.ValidFor, site.Ironic.ServerNow())
		now.Due = states.InPool(node) && node.InstanceUUID == "" && isDue(ctx, site, node.UUID)
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

// isDue reports whether this run may take a machine out of the pool to qualify it again.
func isDue(ctx context.Context, site *machine.Site, id string) bool {
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return false
	}
	known := machine.Kept(site, func(*machine.Site) *dues { return &dues{ids: map[string]bool{}} })
	known.mu.Lock()
	defer known.mu.Unlock()
	if !known.ids[id] && len(known.ids) < room(all, site.Config().Limit.Max) {
		known.ids[id] = true
	}
	return known.ids[id]
}

// room returns how many more machines of the pool may be qualified now: a quarter of those that are idle, and of the limit, and at least
// one, less those at which Ironic is at work.
func room(all map[string]*ironic.Node, most int) int {
	idle, busy := 0, 0
	for node := range maps.Values(all) {
		if states.InPool(node) && node.InstanceUUID == "" {
			idle++
		}
		if q := notes.QualificationOf(node); q != nil && !q.Begun.IsZero() && states.InCleaning(node) {
			busy++
		}
	}
	if most == 0 { // no limit
		most = idle + busy
	}
	return max(1, min(idle+busy, most)/idleShare) - busy
}

// qualifies reports whether the machine must be qualified now: it is on its way into the pool, or in it and due.
func (p *plan) qualifies() bool {
	fit := p.seen.Fitness
	switch inPool := states.InPool(p.seen.node()) || p.seen.Coming; {
	case p.Qualification.IsNull(), !p.mayBecomeAvailable(), p.isKeptOut(), p.Held:
		return false
	case p.seen.New, p.Has(DoReplace):
		return true
	case inPool:
		return fit != nil && fit.Due && !p.Qualification.Unknown
	}
	return fit == nil || !fit.Holds
}

// qualification returns the step. Its steps may erase disks.
func (p *plan) qualification() Step { return Step{Do: DoQualify, Cost: decide.Clean} }

// warnQualification says what the qualification does to the machine, and refuses one that would erase disks that are to be kept.
func (p *plan) warnQualification() {
	burns := slices.ContainsFunc(p.Qualification.V.Steps, func(s ironic.CleanStep) bool { return s.String() == machine.BurnsDisks })
	if burns && len(p.Skips.V) > 0 {
		p.refuse(decide.At("qualification", "steps"), "Burn-in would erase kept disks", fmt.Sprintf("Host %s keeps disks with "+
			"skip_block_devices, and %s writes to all disks of a machine, whatever that says. Remove the step, or skip_block_devices.",
			p.Label, machine.BurnsDisks))
	}
	if !p.costs(DoQualify) {
		return
	}
	why := ""
	if fit := p.seen.Fitness; fit != nil && fit.Why != "" {
		why = " That is planned because " + failure.Ended(fit.Why)
	}
	erases := ""
	if w := p.Qualification.V; w.Runbook != "" || len(machine.Erasing(w.Steps)) > 0 {
		erases = " That may erase its disks."
	}
	leaves := ""
	if states.InPool(p.seen.node()) {
		leaves = " It leaves the pool for that time."
	}
	p.warn(decide.At("qualification"), "Machine is qualified", fmt.Sprintf("Host %s: Ironic runs %s on the machine, which boots for "+
		"that.%s%s%s", p.Label, machine.StepNames(p.Qualification.V.Order()), erases, leaves, why))
}

// qualify qualifies the machine, unless a run that the plan does not know has done that. The apply goes on if the machine fails, which then
// stays out of the pool.
func (w *Work) qualify(ctx context.Context) error {
	want := w.Wish.Qualification
	if w.isMisfit() || states.Deployed(w.Node()) {
		return nil
	}
	if w.Was != nil && states.InPool(w.Node()) && !w.mayLeave(ctx) {
		w.notices = append(w.notices, decide.Warn(decide.At("qualification"), "Qualification waits", fmt.Sprintf("Host %s stays in the "+
			"pool, because as many other machines are being qualified as may be at once. A later apply qualifies it.", w.Wish.Label)))
		return nil
	}
	if fit := SeeFitness(ctx, w.Machine.Site(), w.Node(), want, nil); fit.Holds {
		return nil
	}
	err := w.Machine.Qualify(ctx, want.V.Recipe, want.V.Quarantines, want.V.Timeout)
	err = errors.Join(err, w.EndTemporary(ctx, w.Node(), w.Limit))
	q := notes.QualificationOf(w.Node())
	if failed := failure.As(err, failure.KindFailed); failed == nil || q == nil || q.Failed.IsZero() {
		return err
	}
	w.unfit = err
	return nil
}

// mayLeave reports whether the machine may still leave the pool, of which other runs may have taken others.
func (w *Work) mayLeave(ctx context.Context) bool {
	all, err := w.Machine.Site().Ironic.ShortNodes(ctx)
	return err == nil && room(all, w.Machine.Site().Config().Limit.Max) > 0
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
			"false on its metal_host, which qualifies it again, or run metal unretire."
	}
	_, detail := failure.Explain("qualify host "+w.Wish.Label, &failed)
	return []decide.Notice{decide.Warn(decide.At("qualification"), "Machine has failed its qualification", detail)}
}
