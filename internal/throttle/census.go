package throttle

import (
	"slices"
	"time"
)

// SettleFor is how long a machine keeps its slot after it was started, in the process that started it, because it loads its image
// during that time.
const SettleFor = 30 * time.Second

// start is a machine that is being switched on or restarted. Times are by the site's clock.
type start struct {
	first, last time.Time // when it was first and last seen starting
	own         bool      // this process has requested the start
}

// Started says that a machine that this process has switched on or restarted is on. It keeps its slot for SettleFor.
func (l *Limiter) Started(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteStart(id)
}

// noteStart records a start by this process; mu is held.
func (l *Limiter) noteStart(id string) {
	s, now := l.starts[id], l.site.Now()
	if s.first.IsZero() {
		s.first = now
	}
	s.last, s.own = now, true
	l.starts[id] = s
}

// keeping is a machine that keeps its slot.
type keeping struct {
	users int  // how many callers of Keep have not released it
	begun bool // it has a slot
}

// Keep lets a machine keep its slot until all callers have called release: from its next operation on, it counts as busy though the site
// shows it at rest. It counts for this process only, and never as stuck. Other runs may take the slot while the machine is at rest: then
// the next operation waits for another one.
func (l *Limiter) Keep(id string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kept[id]
	k.users++
	l.kept[id] = k
	return func() {
		defer l.Freed()
		l.mu.Lock()
		defer l.mu.Unlock()
		k := l.kept[id]
		if k.users--; k.users == 0 {
			delete(l.kept, id)
			return
		}
		l.kept[id] = k
	}
}

// begun records that an operation on a machine is in progress; mu is held.
func (l *Limiter) begun(id string) {
	if k, keeps := l.kept[id]; keeps {
		k.begun = true
		l.kept[id] = k
	}
}

// census counts the machines that have an operation in progress and are not exempt; mu is held.
func (l *Limiter) census(machines []Machine, now time.Time) Census {
	census := Census{Taken: now}
	l.forgetStarts(now)
	for _, m := range machines {
		since, counts := l.counts(m, census.Taken)
		if counts && !l.limit.Exempts(m) {
			held := l.kept[m.ID].begun && !m.Busy && !m.Starting
			census.Busy = append(census.Busy, Busy{ID: m.ID, Scope: l.limit.ScopeOf(m), Since: since, Held: held})
		}
	}
	return census
}

// passed returns the time by the clock that has written when machines entered their states, as far as this process can know: at least so
// much has passed there. The clock of the site's answers, which is now, may be another one; ahead of that, nothing is known. mu is held.
func (l *Limiter) passed(machines []Machine, now time.Time) time.Time {
	for _, m := range machines {
		if m.Since.After(l.latest.wrote) {
			l.latest.wrote, l.latest.seen = m.Since, time.Now()
		}
	}
	if passed := l.latest.wrote.Add(time.Since(l.latest.seen)); passed.Before(now) {
		return passed
	}
	return now
}

// counts reports whether a machine has an operation in progress, and since when; mu is held.
func (l *Limiter) counts(m Machine, now time.Time) (since time.Time, counts bool) {
	s, known := l.starts[m.ID]
	if m.Starting {
		if !known {
			s.first = now
		}
		s.last = now
		l.starts[m.ID] = s
	}
	if m.Busy || m.Starting { // the operation of an earlier run, or one whose answer was lost
		l.begun(m.ID)
	}
	switch {
	case m.Busy:
		return m.Since, true
	case m.Starting, s.own:
		return s.first, true
	case l.kept[m.ID].begun:
		return now, true
	}
	return time.Time{}, false
}

// forgetStarts removes the starts that have ended; mu is held.
func (l *Limiter) forgetStarts(now time.Time) {
	for id, s := range l.starts {
		if now.Sub(s.last) >= SettleFor {
			delete(l.starts, id)
		}
	}
}

// Usage says how the slots of a site are used.
type Usage struct {
	Max                        int // 0: no limit
	Busy                       int // machines that take a slot
	Own, Others, Stuck, Exempt int // started by this process, by others; not counted any more; busy without a slot
}

// UsageOf counts machines by the rules of the limit.
func (l *Limiter) UsageOf(machines []Machine) Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	taking, stuck := l.limit.slots(l.census(machines, l.site.Now()))
	u := Usage{Max: l.limit.Max, Busy: len(taking), Stuck: len(stuck)}
	for _, b := range taking {
		if l.own[b.ID] {
			u.Own++
		} else {
			u.Others++
		}
	}
	u.Exempt = l.limit.exempt(machines)
	return u
}

// UsedOf returns how many machines of each scope take a slot: those that UsageOf counts as busy.
func (l *Limiter) UsedOf(machines []Machine) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	taking, _ := l.limit.slots(l.census(machines, l.site.Now()))
	used := map[string]int{}
	for _, b := range taking {
		used[b.Scope]++
	}
	return used
}

// Slots returns the machines that take a slot at a time, those that do not any more because they are stuck, and how many never do because
// they are exempt. It knows only what the machines show: a process that starts machines knows more of these, as Keep says.
func (l Limit) Slots(machines []Machine, now time.Time) (taking, stuck []Busy, exempt int) {
	viewer := Limiter{limit: l, starts: map[string]start{}}
	taking, stuck = l.slots(viewer.census(machines, now))
	return taking, stuck, l.exempt(machines)
}

// slots divides the machines of a census into those that take a slot and those that do not any more because they are stuck.
func (l Limit) slots(census Census) (taking, stuck []Busy) {
	stuck = Decide(l, census, nil).Stuck
	taking = slices.DeleteFunc(census.Busy, func(b Busy) bool {
		return slices.ContainsFunc(stuck, func(s Busy) bool { return s.ID == b.ID })
	})
	return taking, stuck
}

func (l Limit) exempt(machines []Machine) (n int) {
	for _, m := range machines {
		if m.Busy && l.Exempts(m) {
			n++
		}
	}
	return n
}
