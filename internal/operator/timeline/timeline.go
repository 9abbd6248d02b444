// Package timeline tells the life of one machine. It joins what Ironic knows of a node, the history of the node, the notes of this provider
// on it, and the records of metal watch. Read asks Ironic; Join and what shows a Life are pure.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// Source says who knows something.
type Source string

// The sources.
const (
	FromNode       Source = "node"       // a field of the node in Ironic
	FromAllocation Source = "allocation" // a field of the allocation in Ironic
	FromHistory    Source = "history"    // the history of the node in Ironic
	FromNote       Source = "note"       // a note of this provider in Ironic
	FromRecord     Source = "watch"      // a record of metal watch
)

// Moment is something that happened to a machine, or a time of which nothing is known.
type Moment struct {
	At time.Time `json:"at"` // by the clock of the site
	// when it ended, or when it was last known to go on; zero: it took no time, or that is not known
	Until   time.Time `json:"until,omitzero"`
	Took    float64   `json:"seconds,omitempty"` // from At to Until
	Bound   Bound     `json:"bound,omitempty"`   // what Took is; "": exactly how long it took
	Node    string    `json:"node_name,omitempty"`
	NodeID  string    `json:"node_id,omitempty"`
	State   string    `json:"state,omitempty"` // the provision state that the machine was in from At on
	What    string    `json:"what"`
	Who     string    `json:"who,omitempty"`    // a run, a user, a conductor, or the owner in Terraform
	Reason  string    `json:"reason,omitempty"` // of a failure, of the table of reasons; "": none has Ironic's words
	Words   string    `json:"words,omitempty"`  // Ironic's
	Failed  bool      `json:"failed,omitempty"`
	Unknown bool      `json:"unknown,omitempty"` // nothing is known between At and Until
	Sources []Source  `json:"sources,omitempty"`
}

// Bound says what is known of a duration.
type Bound string

// The bounds.
const (
	atLeast Bound = "at least" // the beginning or the end is not known
	soFar   Bound = "so far"   // it goes on
)

func (m *Moment) length() time.Duration { return max(0, m.Until.Sub(m.At)) }

// Life is what is known of a machine, or of the machines of an allocation.
type Life struct {
	Subject string    `json:"subject"` // "node NAME (UUID)", "allocation NAME (UUID)", or the number of nodes
	AsOf    time.Time `json:"as_of"`   // by the clock of the site
	Now     []string  `json:"now"`     // what holds then, each as a sentence
	Moments []Moment  `json:"moments"` // the oldest first
	Missing []string  `json:"missing"` // what could not be read, each as a sentence

	stays   []stay
	several bool // the moments are those of several nodes
}

// Facts are what is known of the machines of a life.
type Facts struct {
	Subject    string
	Now        time.Time
	Allocation *ironic.Allocation // the subject; nil: a node is
	Machines   []Evidence
	Missing    []string
}

// Evidence is what is known of one machine.
type Evidence struct {
	ID, Name string
	Node     *ironic.Node       // nil: Ironic has no such node any more
	Reserved *ironic.Allocation // that has reserved it, if that is not the subject
	History  []ironic.Event
	Records  [][]watch.Entry // each is a file
	Periods  []Period        // only what happened then belongs to the life; nil: all
}

// Period is a time. A zero end is not limited.
type Period struct{ From, To time.Time }

// has reports whether a time is in one of the periods.
func (m *Evidence) has(at time.Time) bool {
	return m.Periods == nil || slices.ContainsFunc(m.Periods, func(p Period) bool {
		return !at.Before(p.From) && (p.To.IsZero() || !at.After(p.To))
	})
}

// slack is how far times of the same event may differ: Ironic stores some in whole seconds, and writes the history before the state.
const slack = 5 * time.Second

// shortestGap is the shortest time of which a life says that nothing is known.
const shortestGap = time.Minute

// Join tells a life from its facts.
func Join(f Facts) Life {
	life := Life{Subject: f.Subject, AsOf: f.Now, Now: []string{}, Missing: append([]string{}, f.Missing...)}
	if f.Allocation != nil {
		told, now := ofAllocation(f.Allocation, f.Now)
		life.Moments, life.Now = append(life.Moments, told...), append(life.Now, now...)
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		stays := within(staysOf(m, f.Now), m)
		moments := fromStays(stays, f.Now)
		moments = mergeHistory(moments, m.History)
		if m.Reserved != nil {
			told, _ := ofAllocation(m.Reserved, f.Now)
			moments = append(moments, told...)
		}
		if m.Node != nil {
			noted, now := fromNode(m.Node, f.Now)
			moments, life.Now = append(moments, noted...), append(life.Now, now...)
			moments = append(moments, lastChange(m.Node, slices.Concat(life.Moments, moments))...)
			life.Now = withLastError(m.Node, moments, life.Now)
		}
		for _, moment := range moments {
			if m.has(moment.At) {
				moment.Node, moment.NodeID = m.Name, m.ID
				life.Moments = append(life.Moments, moment)
			}
		}
		life.stays = append(life.stays, stays...)
	}
	life.several = len(f.Machines) > 1
	life.order()
	life.Moments = withGaps(life.Moments, f.Now)
	life.measure()
	return life
}

// History tells what the history of nodes and the notes on them say, all in one list.
func History(f Facts) Life {
	life := Life{
		Subject: f.Subject, AsOf: f.Now, Now: []string{}, Moments: []Moment{}, Missing: append([]string{}, f.Missing...),
		several: len(f.Machines) > 1,
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		noted, now := ofNotes(m.Node, f.Now)
		for _, text := range now {
			life.Now = append(life.Now, m.Name+": "+text)
		}
		for _, moment := range append(mergeHistory(nil, m.History), noted...) {
			moment.Node, moment.NodeID = m.Name, m.ID
			life.Moments = append(life.Moments, moment)
		}
	}
	life.order()
	life.measure()
	return life
}

func (l *Life) order() {
	slices.SortStableFunc(l.Moments, func(a, b Moment) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(rank(a), rank(b))) })
}

func (l *Life) measure() {
	for i := range l.Moments {
		l.Moments[i].Took = l.Moments[i].length().Round(time.Second).Seconds()
		if l.Moments[i].Until.IsZero() {
			l.Moments[i].Took = 0
		}
	}
}

// rank orders moments of the same time: the creation of a node comes first, and what a run noted comes before what Ironic did.
func rank(m Moment) int {
	source := m.Sources[0]
	if m.State != "" {
		source = FromRecord // also if the node itself tells its state
	}
	return slices.Index([]Source{FromNode, FromAllocation, FromNote, FromRecord, FromHistory}, source)
}

// withGaps adds the times of which nothing is known. moments are in order.
func withGaps(moments []Moment, now time.Time) []Moment {
	all := []Moment{}
	var known time.Time // up to when something is known
	gap := func(to time.Time) {
		if to.After(now) {
			to = now
		}
		if !known.IsZero() && to.Sub(known) > shortestGap {
			all = append(all, Moment{At: known, Until: to, What: "nothing is known", Unknown: true})
		}
	}
	for _, m := range moments {
		gap(m.At)
		all = append(all, m)
		for _, at := range []time.Time{m.At, m.Until} {
			if at.After(known) {
				known = at
			}
		}
	}
	gap(now)
	return all
}
