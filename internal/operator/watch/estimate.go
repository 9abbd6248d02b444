package watch

import "time"

// fewEnds is the number of operations that must have ended for an estimate.
const fewEnds = 3

type end struct{ from, to time.Time }

// estimate returns how long the remaining machines will take, if they end as often as the others have ended between the begin of the
// first operation and the last end. While no operation ends for longer than that, the estimate grows. It is never negative.
func estimate(ends []end, remaining int, now time.Time) (left time.Duration, known bool) {
	if remaining <= 0 {
		return 0, true
	}
	if len(ends) < fewEnds {
		return 0, false
	}
	began, last := ends[0].from, ends[0].to
	for _, e := range ends {
		if e.from.Before(began) {
			began = e.from
		}
		if e.to.After(last) {
			last = e.to
		}
	}
	each := func(until time.Time) time.Duration {
		return max(0, until.Sub(began)) / time.Duration(len(ends)) * time.Duration(remaining)
	}
	finish := last.Add(each(last))
	if !finish.After(now) {
		finish = now.Add(each(now))
	}
	return max(0, finish.Sub(now)), true
}
