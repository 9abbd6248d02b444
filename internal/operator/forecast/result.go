package forecast

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// Outcome is how a step ends.
type Outcome string

// The outcomes.
const (
	Done       Outcome = "done"
	Failed     Outcome = "failed"
	NotStarted Outcome = "not started" // the rollout has stopped
	Skipped    Outcome = "skipped"     // a step before it did not succeed
)

// Line is what happens to a machine. Times count from the begin of the apply.
type Line struct {
	Address string
	Name    string // of the machine
	Does    string
	Begins  time.Duration // when Terraform begins
	Turn    time.Duration // how long the machine waits for its turn in the rollout
	Slot    time.Duration // how long it waits for a slot, in all
	From    time.Duration // when its first operation begins
	To      time.Duration // when the last one ends
	Outcome Outcome
	Why     string // it has not succeeded
	MayBe   bool   // it may not be touched at all
}

// untouched is 1 if nothing happens to the machine, otherwise 0.
func (l Line) untouched() int {
	if l.Outcome == NotStarted || l.Outcome == Skipped {
		return 1
	}
	return 0
}

// Unused is how many slots are unused on average, while Terraform has steps left, by reason.
type Unused struct {
	Parallelism  float64 // machines wait until Terraform begins with them
	Rollout      float64 // machines wait for their turn
	Dependencies float64 // machines wait for other resources
	NoMachines   float64 // no machine is left
}

// Group is a rollout group.
type Group struct {
	Name    string // as in the configuration; or what the members have in common
	Members int    // that the plan changes
	Most    int    // how many were away at once, at most
	May     int    // max_unavailable; zero: any number
}

// Result is a forecast.
type Result struct {
	Total  time.Duration // the median over the orders that were tried, as is all that follows
	Lines  []Line
	Most   int // slots in use at once, at most
	Stuck  int // machines at once, at most, that are stuck, and take no slot
	Slots  int // max_concurrent; zero: no limit
	Places int // -parallelism
	Unused Unused
	Groups []Group
	Notes  []string

	Ends map[Outcome]Range // how many machines end in a way, in any of these orders

	Fastest, Slowest time.Duration // in any of these orders; if machines may not be touched at all, Fastest is without them
}

// Range is from the lowest to the highest number.
type Range struct{ Least, Most int }

// String is such as "1" or "0 to 3".
func (r Range) String() string {
	if r.Least == r.Most {
		return strconv.Itoa(r.Least)
	}
	return fmt.Sprintf("%d to %d", r.Least, r.Most)
}

// widen makes the ranges of a forecast include others, which are sorted.
func (r *Result) widen(others []*Result) {
	r.Fastest, r.Slowest = min(cmp.Or(r.Fastest, others[0].Total), others[0].Total), max(r.Slowest, others[len(others)-1].Total)
	for _, end := range []Outcome{Done, Failed, NotStarted, Skipped} {
		in, known := r.Ends[end]
		for i, other := range others {
			n := other.Count(end)
			if !known && i == 0 {
				in = Range{n, n}
			}
			in = Range{min(in.Least, n), max(in.Most, n)}
		}
		r.Ends[end] = in
	}
}

// chance says in how many ways machines end by chance; "" if there is only one.
func (r *Result) chance() string {
	if failed, left := r.Ends[Failed], r.Ends[NotStarted]; failed.Least != failed.Most || left.Least != left.Most {
		return fmt.Sprintf("which machines begin first is chance, and decides how many a failure touches: %s fail, and %s are not started",
			failed, left)
	}
	return ""
}

// Count returns how many machines end in a way.
func (r *Result) Count(how Outcome) (n int) {
	for i := range r.Lines {
		if r.Lines[i].Outcome == how {
			n++
		}
	}
	return n
}
