package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

type slots struct {
	*clock
	in      *Input
	waiting map[string]*waiter   // by machine
	busy    map[string]*occupant // by machine
	// Ironic shows one state from the begin to the end of an operation, so that it becomes stuck; otherwise none does
	lasts bool
	most  int // machines that took slots at once
	stuck int // machines that were stuck at once
	notes []string
}

type waiter struct {
	throttle.Ticket
	name  string
	begin func()
}

type occupant struct {
	name, scope string
	own         bool      // it is of this run
	exempt      bool      // it takes no slot
	since       time.Time // when its operation began
	until       time.Time // of one that is not of this run; zero: not known
}

func newSlots(c *clock, in *Input, lasts bool) *slots {
	s := &slots{clock: c, in: in, lasts: lasts, waiting: map[string]*waiter{}, busy: map[string]*occupant{}}
	l := in.Settings.Limit
	for i := range in.Site.Occupied {
		o := &in.Site.Occupied[i]
		one := &occupant{
			name: cmp.Or(o.Name, o.ID), scope: l.ScopeOf(o.Machine), since: o.Since, until: s.endOf(o), exempt: l.Max == 0 ||
				l.Exempts(o.Machine),
		}
		s.busy[o.ID] = one
		if !one.until.IsZero() {
			s.on(one.until, func() { delete(s.busy, o.ID) })
		} else {
			s.notes = append(s.notes, fmt.Sprintf("%s has been in state %q for %s, and it is not known when that ends", one.name, o.State,
				round(s.now.Sub(o.Since))))
		}
		if l.StuckAfter > 0 {
			s.on(o.Since.Add(l.StuckAfter+time.Second), func() {})
		}
	}
	for n, w := range in.Site.Waiting {
		s.addOthers(n, w)
	}
	return s
}

// endOf returns when a machine that is busy now gives its slot back; zero: not known. One that needs longer than usual has another tenth of
// that time.
func (s *slots) endOf(o *Occupied) time.Time {
	var takes time.Duration
	for _, does := range o.Does {
		d, known := s.in.Times.Of(does, o.Class)
		if !known {
			return time.Time{}
		}
		takes += d
	}
	stuck := s.in.Settings.Limit.StuckAfter
	switch until := o.Since.Add(takes); {
	case len(o.Does) == 0:
	case until.After(s.now):
		return until
	case stuck == 0 || s.now.Sub(o.Since) < stuck:
		return s.now.Add(takes / 10)
	}
	return time.Time{}
}

// addOthers adds the machines of another run that wait. What they wait for is not known: they get the longest time that is.
func (s *slots) addOthers(n int, w throttle.Word) {
	var needs time.Duration
	for _, classes := range s.in.Times {
		for _, d := range classes {
			needs = max(needs, d)
		}
	}
	s.notes = append(s.notes, fmt.Sprintf("another run has machines that wait for a slot (%d): counted with %s each",
		w.Machines, round(needs)))
	for i := range w.Machines {
		id := fmt.Sprintf("another run %d.%d", n, i)
		s.waiting[id] = &waiter{
			Ticket: throttle.Ticket{ID: id, Scope: w.Scope, Failures: w.Failures, Queued: w.Since}, name: id,
			begin: func() { s.leave(id, needs) },
		}
	}
}

func (s *slots) holders() []string {
	var names []string
	for _, o := range s.busy {
		names = append(names, o.name)
	}
	slices.Sort(names)
	return names
}

// wait calls begin when a machine has a slot. A machine with an operation in progress that the plan did not begin waits for the end of that
// first.
func (s *slots) wait(m *Target, name string, tries int, begin func()) {
	l := s.in.Settings.Limit
	if o := s.busy[m.ID]; o != nil && !o.own {
		if !o.until.IsZero() {
			s.on(o.until, func() { s.wait(m, name, tries, begin) })
		}
		return
	}
	if l.Max == 0 || l.Exempts(m.Machine) {
		begin()
		return
	}
	s.waiting[m.ID] = &waiter{
		Ticket: throttle.Ticket{ID: m.ID, Scope: l.ScopeOf(m.Machine), Failures: m.Failures + tries, Queued: s.now},
		name:   name, begin: begin,
	}
}

// decide lets the machines begin that the scheduler admits, and reports whether there are any.
func (s *slots) decide() (some bool) {
	if len(s.waiting) == 0 {
		return false
	}
	census := throttle.Census{Taken: s.now}
	for _, id := range slices.Sorted(maps.Keys(s.busy)) {
		if o := s.busy[id]; !o.exempt {
			census.Busy = append(census.Busy, throttle.Busy{ID: id, Scope: o.scope, Since: s.since(o)})
		}
	}
	var tickets []throttle.Ticket
	for _, id := range slices.Sorted(maps.Keys(s.waiting)) {
		tickets = append(tickets, s.waiting[id].Ticket)
	}
	for _, t := range throttle.Decide(s.in.Settings.Limit, census, tickets).Go {
		some = true
		w := s.waiting[t.ID]
		delete(s.waiting, t.ID)
		s.busy[t.ID] = &occupant{name: w.name, scope: t.Scope, own: true, since: s.now}
		w.begin()
	}
	s.count()
	return some
}

// since returns since when a machine counts as in its present state.
func (s *slots) since(o *occupant) time.Time {
	if o.own && !s.lasts {
		return s.now
	}
	return o.since
}

// operates says that an operation on a machine of this run begins, and how long it takes.
func (s *slots) operates(id string, takes time.Duration) {
	stuck := s.in.Settings.Limit.StuckAfter
	if o := s.busy[id]; o != nil {
		o.since = s.now
		if stuck > 0 && takes > stuck {
			s.on(s.now.Add(stuck+time.Second), func() {})
		}
	}
}

// count returns how many machines take a slot: those that are not stuck. It remembers the most at once of both.
func (s *slots) count() (takes int) {
	l, stuck := s.in.Settings.Limit, 0
	for _, o := range s.busy {
		switch {
		case o.exempt:
		case l.StuckAfter > 0 && s.now.Sub(s.since(o)) > l.StuckAfter:
			stuck++
		default:
			takes++
		}
	}
	if more := stuck - l.Max; more > 0 && (l.Scope == "" || l.Scope == throttle.ScopeAll) { // so many may be stuck at once
		takes, stuck = takes+more, l.Max
	}
	s.most, s.stuck = max(s.most, takes), max(s.stuck, stuck)
	return takes
}

// leave gives the slot of a machine back after a time, unless the machine has another one then.
func (s *slots) leave(id string, after time.Duration) {
	mine := s.busy[id]
	if after == 0 {
		delete(s.busy, id)
		return
	}
	s.after(after, func() {
		if s.busy[id] == mine {
			delete(s.busy, id)
		}
	})
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }
