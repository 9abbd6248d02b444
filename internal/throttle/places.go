package throttle

import (
	"fmt"
	"slices"
)

// The log tells each new place of the machines that are next, and for the others every tenth place: with hundreds of machines in
// the queue, each admission moves all of them.
const (
	nextPlaces = 5
	farStep    = 10
)

// tellPlaces logs the machines that wait for a slot and whose place in the queue has changed.
func (l *Limiter) tellPlaces() {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := slices.SortedFunc(slices.Values(l.queue), func(a, b *waiter) int { return a.before(b.Ticket) })
	last := map[string]int{} // by scope
	for _, w := range queue {
		last[w.Scope]++
	}
	place := map[string]int{}
	for _, w := range queue {
		place[w.Scope]++
		at := place[w.Scope]
		near := at <= nextPlaces && at != w.told
		far := max(at-w.told, w.told-at) >= farStep
		if w.told == 0 || near || far {
			w.told = at
			w.log(fmt.Sprintf("waits for a slot: position %d of %d", at, last[w.Scope]), "position", at, "of", last[w.Scope])
		}
	}
}
