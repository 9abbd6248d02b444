package throttle

import (
	"cmp"
	"slices"
	"time"
)

// The scheduler is a pure function from a census of machines to a decision. It has no clock and starts nothing.
// reference/limit.md#order-of-admission describes its rules.

// MaxFailures is the number of failures that count at most, so that a machine that always fails still gets a slot.
const MaxFailures = 5

// Busy is a machine with an operation in progress, whether this run or another one started it.
type Busy struct {
	ID    string
	Scope string    // machines of different scopes do not compete
	Since time.Time // when it entered its present state, by the clock of the census
	Held  bool      // only this process knows that it takes a slot: see Limiter.AdmitStop
}

// Census lists the machines that had an operation in progress at one moment.
type Census struct {
	Taken time.Time
	Busy  []Busy
}

// Ticket is a machine that waits for a slot.
type Ticket struct {
	ID       string
	Scope    string
	Failures int       // recent failed operations: a machine waits behind machines with fewer failures
	Queued   time.Time // when it started to wait
}

// before is the order of the queue: failures, then time, then ID, which makes the order total.
func (t Ticket) before(o Ticket) int {
	return cmp.Or(
		cmp.Compare(min(t.Failures, MaxFailures), min(o.Failures, MaxFailures)),
		t.Queued.Compare(o.Queued),
		cmp.Compare(t.ID, o.ID),
	)
}

// Decision says which machines may start now.
type Decision struct {
	Go    []Ticket       // in the order of the queue
	Room  map[string]int // free slots in each scope after those have started; only scopes with waiting or busy machines
	Stuck []Busy         // machines that do not count any more, the one stuck longest first
}

// Decide returns the waiting machines that may start. A machine that already has an operation in progress starts at once and takes
// no additional slot; one that holds a slot which others have taken meanwhile waits. Each stuck machine frees a slot, but at most Max of them do, so that at most twice Max machines have an
// operation in progress.
func Decide(limit Limit, census Census, waiting []Ticket) Decision {
	d := Decision{Room: map[string]int{}}
	queue := slices.Clone(waiting)
	slices.SortFunc(queue, Ticket.before)
	if limit.Max == 0 {
		d.Go = queue
		return d
	}
	busy, held, stuck := map[string]bool{}, map[string]bool{}, map[string]int{}
	unseen := map[string]int{} // slots of a scope that are held, so that other runs may have taken them
	for _, scope := range scopes(census, queue) {
		d.Room[scope] = limit.Max
	}
	for _, b := range census.Busy {
		if busy[b.ID], held[b.ID] = true, b.Held; b.Held {
			unseen[b.Scope]++
		}
		d.Room[b.Scope]--
		if limit.StuckAfter > 0 && census.Taken.Sub(b.Since) > limit.StuckAfter {
			d.Stuck = append(d.Stuck, b)
		}
	}
	slices.SortFunc(d.Stuck, func(a, b Busy) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	d.Stuck = slices.DeleteFunc(d.Stuck, func(b Busy) bool { stuck[b.Scope]++; return stuck[b.Scope] > limit.Max })
	for _, b := range d.Stuck {
		d.Room[b.Scope]++
	}
	for _, t := range queue {
		switch {
		case held[t.ID] && d.Room[t.Scope]+unseen[t.Scope] <= 0:
		case held[t.ID]:
			unseen[t.Scope]--
			d.Go = append(d.Go, t)
		case busy[t.ID]:
			d.Go = append(d.Go, t)
		case d.Room[t.Scope] > 0:
			d.Room[t.Scope]--
			d.Go = append(d.Go, t)
		}
	}
	return d
}

func scopes(census Census, queue []Ticket) []string {
	var all []string
	for _, b := range census.Busy {
		all = append(all, b.Scope)
	}
	for _, t := range queue {
		all = append(all, t.Scope)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
