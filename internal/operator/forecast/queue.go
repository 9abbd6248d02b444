package forecast

import (
	"fmt"
	"slices"
)

// queue lets the steps on one machine follow each other, because Ironic does one thing with a machine at a time: removals first, then in
// the order of the plan. It returns notes that name the steps for which the plan has no order.
func (in *Input) queue() (notes []string) {
	in.Steps = slices.Clone(in.Steps)
	var pairs []string
	last := map[string]int{} // by machine
	for _, removals := range []bool{true, false} {
		for i := range in.Steps {
			s := &in.Steps[i]
			if s.Machine == nil || len(s.Legs) == 0 || s.Removes != removals {
				continue
			}
			before, is := last[s.Machine.ID]
			switch {
			case is && in.follows(before, i):
				continue
			case is && !in.follows(i, before):
				s.After = append(slices.Clone(s.After), before)
				pairs = append(pairs, fmt.Sprintf("%s and %s on %s", in.Steps[before].Address, s.Address, s.Machine.label()))
			}
			last[s.Machine.ID] = i
		}
	}
	if len(pairs) > 0 {
		notes = []string{"two resources work on one machine, and neither depends on the other: " + Few(pairs) +
			". Counted in this order. The apply may begin with either, and fail. Add depends_on"}
	}
	return notes
}

// follows reports whether a step waits for another one, also through others.
func (in *Input) follows(step, other int) bool {
	seen := map[int]bool{}
	var search func(at int) bool
	search = func(at int) bool {
		if slices.Contains(in.Steps[at].After, other) {
			return true
		}
		return slices.ContainsFunc(in.Steps[at].After, func(on int) bool {
			if seen[on] {
				return false
			}
			seen[on] = true
			return search(on)
		})
	}
	return search(step)
}

// crowd notes that more machines are replaced than have places: those that wait for their turn give their places up, and which do is
// chance.
func (in *Input) crowd() []string {
	n := 0
	for i := range in.Steps {
		if in.Steps[i].Removes && in.Steps[i].Turn != nil {
			n++
		}
	}
	if n <= in.Settings.Parallelism {
		return nil
	}
	return []string{fmt.Sprintf("the plan replaces %d machines with -parallelism=%d: which of them begin first is chance, so that the "+
		"time is less exact. Raise -parallelism", n, in.Settings.Parallelism)}
}

// longOperations says which operations take longer than stuck_after; "" if none does.
func (in *Input) longOperations() string {
	stuck := in.Settings.Limit.StuckAfter
	if in.Settings.Limit.Max == 0 || stuck == 0 {
		return ""
	}
	var long []string
	for i := range in.Steps {
		s := &in.Steps[i]
		takes := func(o Operation) bool {
			d, _ := in.Times.Of(o, s.Machine.Class)
			return d > stuck
		}
		if slices.ContainsFunc(s.Legs, func(l Leg) bool { return slices.ContainsFunc(l, takes) }) {
			long = append(long, s.Address)
		}
	}
	if len(long) == 0 {
		return ""
	}
	return fmt.Sprintf("operations of %s take longer than stuck_after (%s): a machine that stays in one state for so long gives its slot "+
		"to others, so that more work at once. The longest time is without that", Few(long), clockTime(round(stuck)))
}
