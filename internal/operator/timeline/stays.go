package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// stay is a time for which the provision state of a machine is known.
type stay struct {
	state, doing string
	looks        string    // what gives it its colour; "": state does
	node         string    // its name
	from, until  time.Time // until is the last time for which it is known
	earlier      bool      // it may have begun before from
	ended        bool      // the machine has left the state at until
	failed       bool
	reason       string // of the table of reasons
	words        string // Ironic's
	conductor    string
	instance     string
	sources      []Source
}

// staysOf joins the states that all sources know, in order. Records come first: they know what a machine did in a state.
func staysOf(m *Evidence, now time.Time) []stay {
	var all []stay
	for _, record := range m.Records {
		for _, s := range recorded(record, m.ID) {
			all = add(all, s)
		}
	}
	for _, e := range m.History {
		if e.State != "" && e.Seconds != nil {
			all = add(all, stay{
				state: e.State, from: e.CreatedAt.Add(-time.Duration(*e.Seconds) * time.Second), until: e.CreatedAt,
				earlier: states.AwaitsAgent(ironic.State(e.State)), sources: []Source{FromHistory},
			})
		}
	}
	if m.Node != nil {
		all = atPresent(noted(all, m.Node), m.Node, now)
	}
	for i := range all {
		all[i].node = m.Name
		if i+1 == len(all) {
			break
		}
		if next := all[i+1]; next.from.Sub(all[i].until) <= grain && !next.earlier {
			all[i].until, all[i].ended = later(all[i].from, next.from), true
		}
	}
	return all
}

// add adds a stay, or what its source knows of those that it is the same as. The states in which Ironic works may be known in parts.
func add(all []stay, s stay) []stay {
	first, last := -1, -1
	for i, b := range all {
		overlap := same(b.from, s.from) || s.from.Before(b.until) && b.from.Before(s.until)
		if b.state == s.state && overlap && (b.doing == s.doing || !s.isRecorded() || !b.isRecorded()) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		after := slices.IndexFunc(all, func(b stay) bool { return b.from.After(s.from) })
		if after < 0 {
			after = len(all)
		}
		return slices.Insert(all, after, s)
	}
	if s.from.Before(all[first].from) && !same(s.from, all[first].from) {
		all[first].from = s.from
	}
	all[first].earlier = all[first].earlier && s.earlier
	all[last] = all[last].and(s)
	return all
}

func (s stay) isRecorded() bool { return slices.Contains(s.sources, FromRecord) }

// atPresent adds the present state of a node, which is that of the last stay if the node has not changed it since.
func atPresent(all []stay, n *ironic.Node, now time.Time) []stay {
	s := stay{
		state: n.ProvisionState, from: n.ProvisionUpdatedAt, until: now, earlier: states.AwaitsAgent(ironic.State(n.ProvisionState)),
		failed: states.OperationFailed(n), conductor: n.Reservation, instance: n.InstanceUUID, sources: []Source{FromNode},
	}
	if s.from.IsZero() {
		s.from, s.earlier = now, true
	}
	if s.failed {
		if why := machine.FailureOf(n); why != nil {
			s.reason, s.words = why.Reason, api.FirstLine(why.Words)
		}
	}
	if len(all) == 0 {
		return append(all, s)
	}
	switch last := &all[len(all)-1]; {
	case last.state != s.state || s.from.After(last.until) && !same(s.from, last.from):
		return append(all, s)
	case last.doing != "": // nothing says when that ended
		s.from, s.earlier = later(s.from, last.until), true
		return append(all, s)
	default:
		*last = last.and(s)
		last.until, last.ended = now, false
		return all
	}
}

// noted adds the state that a run noted before it deployed the machine.
func noted(all []stay, n *ironic.Node) []stay {
	marker := deploy.InstanceMarkerOf(n)
	since, err := time.Parse(time.RFC3339Nano, marker.Since)
	if err != nil || marker.State == "" {
		return all
	}
	return add(all, stay{
		state: string(marker.State), from: since, until: since, failed: states.Failed(marker.State),
		sources: []Source{FromNote},
	})
}

func recorded(record []watch.Entry, id string) []stay {
	var all []stay
	var open bool      // the watch sees the machine, and all ends with its present state
	var last time.Time // of all lines
	var again time.Time
	leave := func(at time.Time, ended bool) {
		if open {
			all[len(all)-1].until, all[len(all)-1].ended = later(all[len(all)-1].from, at), ended
		}
		open = false
	}
	// resume goes on with the state that the watch saw before Ironic did not answer. Something else may have happened in between.
	resume := func() {
		if again.IsZero() || len(all) == 0 {
			return
		}
		still := all[len(all)-1]
		still.from, still.until, still.earlier = again, again, true
		all, open, again = append(all, still), true, time.Time{}
	}
	for _, e := range record {
		switch {
		case e.Watch == watch.EventLost:
			resume()
			leave(e.At, false)
		case e.Watch == watch.EventAgain && len(all) > 0:
			again = e.At
		case e.Watch == watch.EventBegan:
			resume()
			leave(last, false) // the watch before was killed
			again = time.Time{}
		case e.Watch == watch.EventEnded:
			resume()
			leave(e.At, false)
		case e.Node == id:
			if e.At.After(again) {
				resume()
			}
			again = time.Time{}
			leave(e.At, true)
			all, open = append(all, stayOf(e)), true
		}
		last = later(last, e.At)
	}
	resume()
	leave(last, false)
	return all
}

// stayOf returns the state that begins with a line of a record.
func stayOf(e watch.Entry) stay {
	s := stay{
		state: e.State, doing: e.Doing, looks: e.Looks, from: e.At, until: e.At, failed: e.Failed, reason: e.Reason,
		words: e.Words, instance: e.Instance, sources: []Source{FromRecord},
	}
	if !e.Since.IsZero() && e.Since.Before(e.At) && e.Doing == "" {
		s.from, s.earlier = e.Since, states.AwaitsAgent(ironic.State(e.State))
	}
	return s
}

// and joins what two sources know of the same stay.
func (s stay) and(other stay) stay {
	if other.until.After(s.until) {
		s.until, s.ended = other.until, other.ended
	}
	s.failed = s.failed || other.failed
	s.doing, s.looks = cmp.Or(s.doing, other.doing), cmp.Or(s.looks, other.looks)
	s.reason, s.words = cmp.Or(s.reason, other.reason), cmp.Or(s.words, other.words)
	s.conductor = cmp.Or(s.conductor, other.conductor)
	s.instance = cmp.Or(s.instance, other.instance)
	for _, source := range other.sources {
		if !slices.Contains(s.sources, source) {
			s.sources = append(slices.Clone(s.sources), source)
		}
	}
	return s
}

// within returns the stays that belong to the life of a machine. Of one that has begun before, the time in the periods belongs to it.
func within(stays []stay, m *Evidence) (all []stay) {
	for _, s := range stays {
		if !m.has(s.from) {
			reached := slices.DeleteFunc(slices.Clone(m.Periods), func(p Period) bool {
				return !s.from.Before(p.From) || s.until.Sub(p.From) <= grain
			})
			if len(reached) == 0 {
				continue
			}
			s.from, s.earlier = slices.MinFunc(reached, func(a, b Period) int { return a.From.Compare(b.From) }).From, true
			limited := !slices.ContainsFunc(reached, func(p Period) bool { return p.To.IsZero() })
			if end := slices.MaxFunc(reached, func(a, b Period) int { return a.To.Compare(b.To) }).To; limited && s.until.After(end) {
				s.until, s.ended = end, true // what comes then is the life of others
			}
		}
		all = append(all, s)
	}
	return all
}

// fromStays returns the moments at which the machine entered its states.
func fromStays(stays []stay, now time.Time) []Moment {
	var all []Moment
	for _, s := range stays {
		m := Moment{
			At: s.from, State: s.state, What: cmp.Or(s.doing, s.state), Failed: s.failed, Reason: s.reason, Words: s.words,
			Sources: s.sources,
		}
		if s.conductor != "" {
			m.Who = "conductor " + s.conductor
		}
		if s.until.After(s.from) {
			m.Until = s.until
		}
		switch {
		case m.Until.IsZero():
		case !s.ended && !s.until.Before(now):
			m.Bound = soFar
		case !s.ended || s.earlier:
			m.Bound = atLeast
		}
		all = append(all, m)
	}
	return all
}

// grain is how far apart Ironic's times of the same change may be: it keeps some in whole seconds.
const grain = time.Second

// same reports whether two times may be those of one change of state.
func same(a, b time.Time) bool { return a.Sub(b).Abs() <= grain }

// near reports whether two times may be those of one event.
func near(a, b time.Time) bool { return a.Sub(b).Abs() <= slack }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
