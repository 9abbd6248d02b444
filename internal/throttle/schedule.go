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
	Held  bool      // only this process knows that it takes a slot: see Limiter.Keep
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

// Word is what a run says of its machines that wait in a scope and have failed equally often.
type Word struct {
	Run      string    `json:"run"` // as in its marks
	Scope    string    `json:"scope,omitempty"`
	Failures int       `json:"failures,omitempty"`
	Machines int       `json:"machines"`
	Since    time.Time `json:"since"`   // when the first of them began to wait
	Max      int       `json:"max"`     // the limit of the run
	Renewed  time.Time `json:"renewed"` // by the clock of the site
}

// patience is how much earlier a machine of another run must have begun to wait to go first. It is longer than what the clocks of two
// runs, as estimated from the answers of the site, differ by.
const patience = 10 * time.Second

// before reports whether the machines of a word go before a machine of another run. The order is that of the queue.
func (w Word) before(t Ticket) bool {
	if theirs, mine := min(w.Failures, MaxFailures), min(t.Failures, MaxFailures); theirs != mine {
		return theirs < mine
	}
	return w.Since.Add(patience).Before(t.Queued)
}

// alive returns the words of other runs that were not left for longer than the lease. The time during which a dead run had the lock does
// not count, because no run could renew its words then.
func alive(found Found, run string, now time.Time) []Word {
	return slices.DeleteFunc(slices.Clone(found.Words), func(w Word) bool {
		return w.Run == run || now.Sub(w.Renewed) >= lease+found.Blocked
	})
}

// wordsOf returns what a run with a limit says of its machines. ahead is how far the site's clock is ahead of that of the tickets.
func wordsOf(run string, most int, waiting []Ticket, ahead time.Duration, now time.Time) []Word {
	var words []Word
	queue := slices.SortedFunc(slices.Values(waiting), Ticket.before)
	for _, t := range queue {
		failures := min(t.Failures, MaxFailures)
		i := slices.IndexFunc(words, func(w Word) bool { return w.Scope == t.Scope && w.Failures == failures })
		if i < 0 {
			i = len(words)
			words = append(words, Word{
				Run: run, Scope: t.Scope, Failures: failures, Since: t.Queued.Add(ahead).UTC(), Max: most,
				Renewed: now.UTC(),
			})
		}
		words[i].Machines++
	}
	return words
}

// Decision says which machines may start now.
type Decision struct {
	Go []Ticket // in the order of the queue
	// free slots in each scope after those have started and without those of other runs; only scopes with waiting or busy machines
	Room  map[string]int
	Stuck []Busy // machines that do not count any more, the one stuck longest first

	Yields int // waiting machines that leave a free slot to machines of other runs
}

// Decide returns the waiting machines that may start. A machine that already has an operation in progress starts at once and takes no
// additional slot; one that holds a slot which others have taken meanwhile waits. Each stuck machine frees a slot, but at most Max of them
// do, so that at most twice Max machines have an operation in progress. A machine leaves as many slots free as the words of others name
// machines that go before it. Times of words and tickets are by the same clock.
func Decide(limit Limit, census Census, waiting []Ticket, others ...Word) Decision {
	d := Decision{Room: map[string]int{}}
	queue := slices.Clone(waiting)
	slices.SortFunc(queue, Ticket.before)
	if limit.Max == 0 {
		d.Go = queue
		return d
	}
	busy, stuck := map[string]occupation{}, map[string]int{}
	unseen := map[string]int{} // slots of a scope that are held, so that other runs may have taken them
	for _, scope := range scopes(census, queue) {
		d.Room[scope] = limit.Max
	}
	for _, b := range census.Busy {
		if busy[b.ID] = works; b.Held {
			busy[b.ID] = holds
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
	d.admit(queue, busy, unseen, theirs(limit, d.Room, others))
	return d
}

// occupation says why a machine takes a slot already.
type occupation int

const (
	works occupation = iota + 1 // an operation is in progress
	holds                       // only this process knows: see Busy.Held
)

// admit fills the free slots in the order of the queue. unseen are the slots of each scope that machines hold.
func (d *Decision) admit(queue []Ticket, busy map[string]occupation, unseen map[string]int, others []Word) {
	for _, t := range queue {
		ahead := 0
		for _, w := range others {
			if w.Scope == t.Scope && w.before(t) {
				ahead += w.Machines
			}
		}
		switch room := d.Room[t.Scope]; {
		case busy[t.ID] == holds && room+unseen[t.Scope] <= 0:
		case busy[t.ID] == holds:
			unseen[t.Scope]--
			d.Go = append(d.Go, t)
		case busy[t.ID] == works:
			d.Go = append(d.Go, t)
		case room > ahead:
			d.Room[t.Scope]--
			d.Go = append(d.Go, t)
		case room > 0:
			d.Yields++
		}
	}
	for _, w := range others {
		d.Room[w.Scope] -= w.Machines
	}
}

// theirs returns the words of others, each with as many machines as it can start: the limits of runs may differ.
func theirs(limit Limit, room map[string]int, others []Word) []Word {
	all := slices.Clone(others)
	for i, w := range all {
		busy := limit.Max - room[w.Scope]
		if _, known := room[w.Scope]; !known {
			busy = 0
		}
		all[i].Machines = min(w.Machines, max(w.Max-busy, 0))
	}
	return all
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
