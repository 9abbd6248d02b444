package forecast

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// requests is how long Terraform needs for a step besides what Ironic does with the machine.
const requests = time.Second

// phase is what a step waits for, or does.
type phase int

const (
	pending phase = iota // waits for other steps
	ready                // waits for a place among those of -parallelism
	turning              // waits for its turn
	working              // waits for a slot, or has an operation in progress
	ended
)

// step is a step at work.
type step struct {
	*Step
	phase  phase
	before int // steps that it still waits for
	then   []*step
	line   Line
	turn   *group    // whose turn it has, or waits for
	came   time.Time // when it was ready
	rank   int       // in the order that is known
	leg    int
	tries  int
}

type engine struct {
	*clock
	in     Input
	steps  []*step
	order  int        // of those that are tried
	chance *rand.Rand // in which Terraform begins with steps
	left   int        // steps that have not ended
	places int        // free ones of -parallelism
	queue  []*step    // ready, in order
	groups *groups
	slots  *slots
	unused [4]float64 // slot seconds, by reason, in the order of Unused
}

func newEngine(in Input, order int, lasts bool) *engine {
	c := &clock{now: in.Site.Now}
	all := newSlots(c, &in, lasts)
	e := &engine{
		clock: c, in: in, slots: all, groups: newGroups(c, &in, all), places: in.Settings.Parallelism, left: len(in.Steps),
		order: order, chance: rand.New(rand.NewPCG(uint64(order), 0)), //nolint:gosec // a forecast is the same each time
	}
	ranks := map[string]int{}
	for rank, address := range in.Order {
		ranks[address] = rank
	}
	for i := range in.Steps {
		s := &step{Step: &in.Steps[i]}
		if s.rank = ranks[s.Address]; s.Removes {
			s.rank = ranks["-"+s.Address]
		}
		s.line = Line{Address: s.Address, Does: s.Does, MayBe: s.MayBe}
		if s.Machine != nil {
			s.line.Name = s.Machine.label()
		}
		e.steps = append(e.steps, s)
	}
	for _, s := range e.steps {
		s.before = len(s.After)
		for _, on := range s.After {
			e.steps[on].then = append(e.steps[on].then, s)
		}
	}
	for _, s := range e.steps {
		if s.before == 0 {
			e.ready(s)
		}
	}
	return e
}

func (e *engine) isOver() bool { return e.left == 0 }

func (e *engine) settle() {
	for {
		switch {
		case e.fillPlaces(), e.groups.decide(), e.slots.decide():
			continue
		}
		e.groups.count()
		return
	}
}

// advance goes to the next event. It returns false if there is none.
func (e *engine) advance() bool { return e.step(e.countUnused) }

// ready lets a step wait for a place: in the order that is known, or in one that is tried with those that are ready at the same time. The
// first two begin with the longest step, and end with it.
func (e *engine) ready(s *step) {
	s.phase, s.came = ready, e.now
	if e.in.Order != nil {
		place, _ := slices.BinarySearchFunc(e.queue, s, func(a, b *step) int { return cmp.Compare(a.rank, b.rank) })
		e.queue = slices.Insert(e.queue, place, s)
		return
	}
	same := len(e.queue)
	for same > 0 && e.queue[same-1].came.Equal(e.now) {
		same--
	}
	place := e.chance.IntN(len(e.queue) - same + 1)
	if e.order < 2 {
		place, _ = slices.BinarySearchFunc(e.queue[same:], s, func(a, b *step) int {
			return cmp.Compare(e.length(a), e.length(b)) * (2*e.order - 1)
		})
	}
	e.queue = slices.Insert(e.queue, same+place, s)
}

func (e *engine) length(s *step) (takes time.Duration) {
	for _, leg := range s.Legs {
		for _, o := range leg {
			d, _ := e.in.Times.Of(o, s.Machine.Class)
			takes += d
		}
	}
	return takes
}

// fillPlaces lets Terraform begin with steps.
func (e *engine) fillPlaces() (some bool) {
	for ; e.places > 0 && len(e.queue) > 0; some = true {
		s := e.queue[0]
		e.queue = e.queue[1:]
		e.places--
		s.phase, s.line.Begins = working, e.at(e.now)
		e.begin(s)
	}
	return some
}

func (e *engine) begin(s *step) {
	if s.Machine == nil && len(s.Legs) == 0 && s.Does == "" { // a resource of another provider
		e.finish(s, Done, "")
		return
	}
	jitter := time.Duration(0)
	if e.in.Order == nil {
		jitter = time.Duration(e.chance.Int64N(int64(requests / 10)))
	}
	e.after(requests+jitter, func() { e.takeTurn(s) })
}

func (e *engine) takeTurn(s *step) {
	if s.Turn == nil {
		e.next(s)
		return
	}
	one, follows := e.groups.take(s.Machine, s.line.Name, s.Turn, candidate{
		begin: func(waited time.Duration) {
			s.line.Turn = waited
			e.next(s)
		},
		refuse: func(waited time.Duration, why string) {
			s.line.Turn, s.turn = waited, nil
			e.finish(s, NotStarted, why)
		},
	})
	if s.turn = one; one == nil || follows {
		e.next(s)
		return
	}
	s.phase = turning
}

func (e *engine) next(s *step) {
	s.phase = working
	if s.leg == len(s.Legs) {
		e.finish(s, Done, "")
		return
	}
	leg, queued := s.Legs[s.leg], e.now
	begin := func() {
		s.line.Slot += e.now.Sub(queued)
		if s.leg == 0 && s.tries == 0 {
			s.line.From = e.at(e.now)
		}
		e.operate(s, leg)
	}
	if slices.Equal(leg, Leg{Verify}) {
		begin()
		return
	}
	e.slots.wait(s.Machine, s.line.Name, s.tries, begin)
}

// operate does an operation of a leg, and then the others.
func (e *engine) operate(s *step, leg Leg) {
	if len(leg) == 0 {
		e.leave(s)
		s.leg++
		e.next(s)
		return
	}
	d, _ := e.in.Times.Of(leg[0], s.Machine.Class)
	why := e.in.WhatIf.fails(leg[0], s.Machine)
	if why == failsAtOnce {
		d = 0
	}
	d += e.lag(d)
	e.slots.operates(s.Machine.ID, d)
	e.after(d, func() {
		s.line.To = e.at(e.now)
		switch {
		case why == "":
			e.operate(s, leg[1:])
		case leg[0] == Deploy && s.tries+1 < s.Attempts:
			s.tries++
			e.leave(s)
			e.next(s)
		default:
			e.leave(s)
			e.finish(s, Failed, why)
		}
	})
}

// leave gives the slot of a step back. After a start the machine keeps it for a while.
func (e *engine) leave(s *step) {
	var keeps time.Duration
	if slices.ContainsFunc(s.Legs[s.leg], func(o Operation) bool { return o == Restart || o == PowerOn }) {
		keeps = throttle.SettleFor
	}
	e.slots.leave(s.Machine.ID, keeps)
}

// Reasons why an operation fails.
const (
	failsAtOnce = "the BMC does not answer"
	failsLate   = "the image fails"
)

// fails returns why an operation fails; "" if it does not.
func (w WhatIf) fails(o Operation, m *Target) string {
	switch {
	case slices.Contains(w.Dead, m.Name) && m.Name != "", slices.Contains(w.Dead, m.ID):
		return failsAtOnce
	case w.ImageFails && o == Deploy:
		return failsLate
	}
	return ""
}

// strangers returns the names of dead machines on which no step works.
func (w WhatIf) strangers(steps []Step) []string {
	return slices.DeleteFunc(slices.Clone(w.Dead), func(name string) bool {
		return slices.ContainsFunc(steps, func(s Step) bool { return len(s.Legs) > 0 && (s.Machine.Name == name || s.Machine.ID == name) })
	})
}

// lag is how long it takes on average until a poll shows the end of an operation (reference/limit.md#words-of-other-runs).
func (e *engine) lag(d time.Duration) time.Duration {
	return min(max(d/20, time.Second), e.in.Poll) / 2
}

func (e *engine) finish(s *step, how Outcome, why string) {
	if s.phase != ready && s.phase != pending {
		e.places++
	}
	s.phase, s.line.Outcome, s.line.Why = ended, how, why
	e.left--
	if s.turn != nil {
		e.groups.end(s.turn, s.Step, how == Failed)
	}
	for _, other := range s.then {
		switch other.before--; {
		case other.phase == ended:
		case how != Done:
			other.phase = pending
			e.finish(other, Skipped, "needs "+s.Address)
		case other.before == 0:
			e.ready(other)
		}
	}
}

func (e *engine) at(t time.Time) time.Duration { return t.Sub(e.in.Site.Now) }

func (e *engine) endless() error {
	var turns, waits []string
	for _, s := range e.steps {
		switch s.phase {
		case turning:
			turns = append(turns, s.Address)
		case ready, working:
			waits = append(waits, s.Address)
		case pending, ended:
		}
	}
	if len(turns) > 0 {
		return fmt.Errorf("%w: %s would wait for ever, because other runs work on these members of the rollout group, and no time is "+
			"known at which they end: %s. Give --deploy TIME",
			ErrEndless, Few(turns), Few(e.groups.others()))
	}
	return fmt.Errorf("%w: %s would wait for ever, because these machines have operations in progress and no time is known at which they "+
		"end: %s. Repair them, or set stuck_after",
		ErrEndless, Few(waits), Few(e.slots.holders()))
}

func (e *engine) countUnused(passed time.Duration) {
	if e.in.Settings.Limit.Max == 0 {
		return
	}
	var waits [3]int // by the first three reasons
	for _, s := range e.steps {
		if len(s.Legs) == 0 {
			continue
		}
		switch s.phase {
		case ready:
			waits[0]++
		case turning:
			waits[1]++
		case pending:
			waits[2]++
		case working, ended:
		}
	}
	takes := e.slots.count()
	free := max(0, e.in.Settings.Limit.Max-takes)
	for reason, n := range waits {
		n = min(n, free)
		e.unused[reason] += float64(n) * passed.Seconds()
		free -= n
	}
	e.unused[3] += float64(free) * passed.Seconds()
}

func (e *engine) result() *Result {
	r := &Result{
		Total: e.at(e.now), Most: e.slots.most, Stuck: e.slots.stuck, Slots: e.in.Settings.Limit.Max, Places: e.in.Settings.Parallelism,
		Groups: e.groups.all(),
		Notes:  e.slots.notes,
	}
	for _, s := range e.steps {
		if s.Machine != nil && len(s.Legs) > 0 {
			r.Lines = append(r.Lines, s.line)
		}
	}
	slices.SortStableFunc(r.Lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.untouched(), b.untouched()), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			strings.Compare(a.Address, b.Address))
	})
	if total := r.Total.Seconds(); total > 0 {
		r.Unused = Unused{e.unused[0] / total, e.unused[1] / total, e.unused[2] / total, e.unused[3] / total}
	}
	return r
}
