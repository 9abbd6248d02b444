package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// slots are the slots of the provisioning limit.
type slots struct {
	waiting map[string]*waiter   // by machine
	busy    map[string]*occupant // by machine
	most    int
}

// waiter is a machine that waits for a slot.
type waiter struct {
	throttle.Ticket
	step  *step         // nil: it is one of another run
	needs time.Duration // of another run
}

// occupant is a machine that takes a slot.
type occupant struct {
	name, scope string
	since       time.Time // zero: it is of this run, and not stuck
	until       time.Time // of this plan or not; zero: not known
}

// newSlots returns the slots as the site has them now.
func (e *engine) newSlots() slots {
	all := slots{waiting: map[string]*waiter{}, busy: map[string]*occupant{}}
	l := e.in.Settings.Limit
	for i := range e.in.Site.Occupied {
		o := &e.in.Site.Occupied[i]
		if l.Max == 0 || l.Exempts(o.Machine) {
			continue
		}
		one := &occupant{name: cmp.Or(o.Name, o.ID), scope: l.ScopeOf(o.Machine), since: o.Since, until: e.endOf(o)}
		all.busy[o.ID] = one
		if !one.until.IsZero() {
			e.on(one.until, func() { delete(e.slots.busy, o.ID) })
		} else {
			e.notes = append(e.notes, fmt.Sprintf("%s has been in state %q for %s, and it is not known when that ends", one.name, o.State, round(e.now.Sub(o.Since))))
		}
		if l.StuckAfter > 0 {
			e.on(o.Since.Add(l.StuckAfter+time.Second), func() {})
		}
	}
	for n, w := range e.in.Site.Waiting {
		e.addOthers(&all, n, w)
	}
	return all
}

// endOf returns when a machine that is busy now gives its slot back; zero: not known. One that needs longer than usual has another tenth of that
// time.
func (e *engine) endOf(o *Occupied) time.Time {
	var takes time.Duration
	for _, does := range o.Does {
		d, known := e.in.Times.Of(does, o.Class)
		if !known {
			return time.Time{}
		}
		takes += d
	}
	stuck := e.in.Settings.Limit.StuckAfter
	switch until := o.Since.Add(takes); {
	case len(o.Does) == 0:
	case until.After(e.now):
		return until
	case stuck == 0 || e.now.Sub(o.Since) < stuck:
		return e.now.Add(takes / 10)
	}
	return time.Time{}
}

// addOthers adds the machines of another run that wait. What they wait for is not known: they get the longest time that is.
func (e *engine) addOthers(all *slots, n int, w throttle.Word) {
	var needs time.Duration
	for _, classes := range e.in.Times {
		for _, d := range classes {
			needs = max(needs, d)
		}
	}
	e.notes = append(e.notes, fmt.Sprintf("another run has machines that wait for a slot (%d): counted with %s each", w.Machines, round(needs)))
	for i := range w.Machines {
		id := fmt.Sprintf("another run %d.%d", n, i)
		all.waiting[id] = &waiter{Ticket: throttle.Ticket{ID: id, Scope: w.Scope, Failures: w.Failures, Queued: w.Since}, needs: needs}
	}
}

// holders names the machines that keep their slots.
func (s *slots) holders() []string {
	var names []string
	for _, o := range s.busy {
		names = append(names, o.name)
	}
	slices.Sort(names)
	return names
}

// enqueue lets a step wait for a slot, as soon as its machine is at rest.
func (e *engine) enqueue(s *step) {
	s.since = e.now
	l, m, leg := e.in.Settings.Limit, s.Machine, s.Legs[s.leg]
	if o := e.slots.busy[m.ID]; o != nil && !o.since.IsZero() {
		if !o.until.IsZero() {
			e.on(o.until, func() { e.enqueue(s) })
		}
		return
	}
	if l.Max == 0 || l.Exempts(m.Machine) || slices.Equal(leg, Leg{Verify}) {
		e.start(s)
		return
	}
	e.slots.waiting[m.ID] = &waiter{
		Ticket: throttle.Ticket{ID: m.ID, Scope: l.ScopeOf(m.Machine), Failures: m.Failures + s.tries, Queued: e.now}, step: s,
	}
}

// start begins the leg of a step.
func (e *engine) start(s *step) {
	s.line.Slot += e.now.Sub(s.since)
	if s.leg == 0 && s.tries == 0 {
		s.line.From = e.at(e.now)
	}
	e.operate(s, s.Legs[s.leg])
}

// decideSlots lets the machines start that the scheduler admits.
func (e *engine) decideSlots() (some bool) {
	if len(e.slots.waiting) == 0 {
		return false
	}
	census := throttle.Census{Taken: e.now}
	for _, id := range slices.Sorted(maps.Keys(e.slots.busy)) {
		o := e.slots.busy[id]
		census.Busy = append(census.Busy, throttle.Busy{ID: id, Scope: o.scope, Since: latest(o.since, e.now)})
	}
	var tickets []throttle.Ticket
	for _, id := range slices.Sorted(maps.Keys(e.slots.waiting)) {
		tickets = append(tickets, e.slots.waiting[id].Ticket)
	}
	for _, t := range throttle.Decide(e.in.Settings.Limit, census, tickets).Go {
		some = true
		w := e.slots.waiting[t.ID]
		delete(e.slots.waiting, t.ID)
		e.slots.busy[t.ID] = &occupant{name: t.ID, scope: t.Scope}
		if w.step != nil {
			e.slots.busy[t.ID].name = w.step.line.Name
			e.start(w.step)
			continue
		}
		e.giveBack(t.ID, w.needs)
	}
	e.slots.most = max(e.slots.most, len(e.slots.busy))
	return some
}

// giveBack gives the slot of a machine of another run back after its time.
func (e *engine) giveBack(id string, d time.Duration) {
	e.clock.in(d, func() { delete(e.slots.busy, id) })
}

// leave gives the slot of a step back. After a restart the machine keeps it for a while.
func (e *engine) leave(s *step) {
	id := s.Machine.ID
	mine := e.slots.busy[id]
	if !slices.Contains(s.Legs[s.leg], Restart) {
		delete(e.slots.busy, id)
		return
	}
	e.clock.in(throttle.SettleFor, func() {
		if e.slots.busy[id] == mine {
			delete(e.slots.busy, id)
		}
	})
}

// latest returns a time, or another one if it is zero.
func latest(t, or time.Time) time.Time {
	if t.IsZero() {
		return or
	}
	return t
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }
