// Package throttle decides who may start work now. It is a pure scheduler: a census of who is at work goes in, admissions
// come out. It knows neither Ironic nor Terraform, has no clock and starts nothing; whoever uses it takes the census,
// starts the work, and coordinates with others.
//
// The rules are those of reference discovery-boot-limit.md 4.4.
package throttle

import (
	"cmp"
	"slices"
	"time"
)

// maxFailures bounds how far failures put a host back: a host that always fails still gets its turn among its like.
const maxFailures = 5

// Limit says how many hosts may be at work at once.
type Limit struct {
	// Max is the number of hosts in one scope; zero means no limit.
	Max int
	// StuckAfter is how long a host may be in one state before it does not count any more; zero means for ever.
	StuckAfter time.Duration
}

// Busy is a host at work, whoever started that.
type Busy struct {
	ID    string
	Scope string    // hosts of different scopes do not compete
	Since time.Time // when it came into its present state, by the clock of the census
}

// Census is who is at work at one moment.
type Census struct {
	Taken time.Time
	Busy  []Busy
}

// Ticket is a host that waits for its turn.
type Ticket struct {
	ID       string
	Scope    string
	Failures int       // how often its work has failed lately: it waits behind hosts that have failed less
	Queued   time.Time // when it came
}

// before is the order of the queue: failures, then time, then ID, so that equal times have an order too.
func (t Ticket) before(o Ticket) int {
	return cmp.Or(
		cmp.Compare(min(t.Failures, maxFailures), min(o.Failures, maxFailures)),
		t.Queued.Compare(o.Queued),
		cmp.Compare(t.ID, o.ID),
	)
}

// Decision is who may start now.
type Decision struct {
	Go    []Ticket       // in the order of the queue
	Room  map[string]int // slots left in each scope once those have started; a scope without waiting or busy hosts is absent
	Stuck []Busy         // hosts that do not count any more, the longest first
}

// Decide says who of the waiting may start. A host that is at work already may go on at once, and takes no slot. Stuck
// hosts make room for as many others, but never for more than Max: twice Max is the ceiling of what is at work.
func Decide(limit Limit, census Census, waiting []Ticket) Decision {
	d := Decision{Room: map[string]int{}}
	queue := slices.Clone(waiting)
	slices.SortFunc(queue, Ticket.before)
	if limit.Max == 0 {
		d.Go = queue
		return d
	}
	atWork, stuck := map[string]bool{}, map[string]int{}
	for _, scope := range scopes(census, queue) {
		d.Room[scope] = limit.Max
	}
	for _, b := range census.Busy {
		atWork[b.ID] = true
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
		case atWork[t.ID]:
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
