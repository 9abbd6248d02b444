package forecast

import (
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

	Fastest, Slowest time.Duration // in any of these orders; if machines may not be touched at all, Fastest is without them
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
