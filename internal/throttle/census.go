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

// Keep lets a machine keep its slot until all callers have called release: from its next operation on, it counts as busy though the site shows
// it at rest. It counts for this process only, and never as stuck. Other runs may take the slot while the machine is at rest: then the next
// operation waits for another one.
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

// census counts the machines that take a slot; mu is held.
func (l *Limiter) census(machines []Machine) Census {
	census := Census{Taken: l.site.Now()}
	l.forgetStarts(census.Taken)
	for _, m := range machines {
		since, counts := l.counts(m, census.Taken)
		if counts && !l.limit.Exempts(m) {
			held := l.kept[m.ID].begun && !m.Busy && !m.Starting
			census.Busy = append(census.Busy, Busy{ID: m.ID, Scope: l.limit.ScopeOf(m), Since: since, Held: held})
		}
	}
	return census
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
	taking, stuck := l.taking(machines)
	u := Usage{Max: l.limit.Max, Busy: len(taking), Stuck: stuck}
	for _, b := range taking {
		if l.own[b.ID] {
			u.Own++
		} else {
			u.Others++
		}
	}
	for _, m := range machines {
		if m.Busy && l.limit.Exempts(m) {
			u.Exempt++
		}
	}
	return u
}

// UsedOf returns how many machines of each scope take a slot: those that UsageOf counts as busy.
func (l *Limiter) UsedOf(machines []Machine) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	taking, _ := l.taking(machines)
	used := map[string]int{}
	for _, b := range taking {
		used[b.Scope]++
	}
	return used
}

// taking returns the machines that take a slot, and how many do not count any more because they are stuck; mu is held.
func (l *Limiter) taking(machines []Machine) (taking []Busy, stuck int) {
	census := l.census(machines)
	forgotten := map[string]bool{}
	for _, b := range Decide(l.limit, census, nil).Stuck {
		forgotten[b.ID] = true
	}
	taking = slices.DeleteFunc(census.Busy, func(b Busy) bool { return forgotten[b.ID] })
	return taking, len(forgotten)
}
