// Package watch follows the machines of an Ironic while others work on them. A Model turns lists of machines (Samples) into changes
// and into a View: what is done, in progress and failed, and how long the rest will take. The model is pure. Screen, Lines and Page
// show a View: on a terminal, as lines of text, and as an HTML file. Run reads a list every interval and shows it.
package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Sample is a list of the machines of a selection.
type Sample struct {
	Taken    time.Time // by the clock of the site
	Machines []Machine
	Slots    *Slots           // nil: not counted
	Freeze   *throttle.Freeze // nil: the site is not frozen

	HasLeft func(id string) bool // reports whether another allocation has a machine that is not in the list any more; nil: none has
}

// Goal is the state in which a machine counts as done.
type Goal string

// GoalDeleted is the goal of machines that are to be removed from Ironic. Any other Goal is a provision state; without a goal, a
// machine counts as done when an operation on it has ended and no other is to come.
const GoalDeleted Goal = "deleted"

// Status is what a machine counts as.
type Status int

// The statuses of a machine.
const (
	Resting    Status = iota // not concerned
	Waiting                  // an operation on it is to come
	InProgress               // an operation on it is in progress
	Done
	Failed
)

// Span is a time in which a machine did one thing.
type Span struct {
	Doing, State       string
	From, To           time.Time
	InProgress, Failed bool
}

func (s Span) length() time.Duration { return max(0, s.To.Sub(s.From)) }

// Change is a change of what a machine does.
type Change struct {
	At       time.Time
	Name     string        // for people, with that of the allocation
	From, To string        // From is empty for a machine that is new
	After    time.Duration // the time in From, if an operation was in progress
	Reason   string        // of a failure
	Ended    *Ended        // the operation that has ended with it; nil: none

	before, now Machine
}

// Ended is an operation that has ended.
type Ended struct {
	Operation string        // empty: it began and failed between two samples
	Took      time.Duration // zero: the model has not seen its begin
	Failed    bool
	Step      string // that has failed, or the operation or the fault
	Reason    string // of the failure, of the table of reasons; "": none has Ironic's words
}

// track is what a model knows of a machine.
type track struct {
	Machine
	status  Status
	touched bool      // an operation on it was in progress, or its state has changed, since the model began
	began   time.Time // when the operation in progress, or the last one, began
	ended   time.Time // when it last became done or failed while the model watched; zero: it has not
	spans   []Span    // the last one ends with the last sample

	opened time.Time // when Operation began; zero: the model has not seen it
}

// Model follows the machines of a selection. It is not safe for concurrent use.
type Model struct {
	goal      Goal
	total     int
	began     time.Time // the first sample
	now       time.Time // the last one
	idleSince time.Time // the first of the samples without an operation in progress; zero: the last one has some
	tracks    map[string]*track
	sample    Sample // the last one
}

// NewModel returns a model without samples. total is the number of machines that there will be; the model counts at least those that
// it sees.
func NewModel(goal Goal, total int) *Model {
	return &Model{goal: goal, total: total, tracks: map[string]*track{}}
}

// pauseOfRuns is how long nothing must be in progress for the next operation to begin a new run. The estimate uses only this run.
const pauseOfRuns = time.Minute

// Add takes the next sample, and returns what has changed, in order. Samples that are older than the last one count as simultaneous.
func (m *Model) Add(s Sample) []Change {
	first := m.began.IsZero()
	if first {
		m.began, m.now = s.Taken, s.Taken
	}
	m.sample = s
	before := m.now
	if s.Taken.After(m.now) {
		m.now = s.Taken
	}
	var changes []Change
	seen := map[string]bool{}
	for _, machine := range s.Machines {
		seen[machine.ID] = true
		if change := m.update(machine, before, first); change != nil {
			changes = append(changes, *change)
		}
	}
	for id, t := range m.tracks {
		if !seen[id] && !t.gone() {
			state := stateDeleted
			if s.HasLeft != nil && s.HasLeft(id) {
				state = stateLeft
			}
			if change := m.update(Machine{ID: id, Name: t.Name, State: state, Since: m.now}, before, false); change != nil {
				changes = append(changes, *change)
			}
		}
	}
	m.noteIdle()
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(a.At.Compare(b.At), words.CompareNames(a.Name, b.Name)) })
	return changes
}

// update takes a machine of a sample, and returns the change; nil if there is none.
func (m *Model) update(machine Machine, before time.Time, first bool) *Change {
	for _, text := range []*string{
		&machine.Name, &machine.Allocation, &machine.State, &machine.Power, &machine.Why.Words, &machine.Turn,
		&machine.Stops, &machine.Pauses, &machine.Step,
	} {
		*text = rest.OneLine(*text)
	}
	if machine.Since.IsZero() {
		machine.Since = m.now
	}
	t, known := m.tracks[machine.ID]
	if !known {
		t = &track{}
		m.tracks[machine.ID] = t
	}
	last := t.Machine
	t.Machine = machine
	if known && last.doing() == machine.doing() && last.Failed == machine.Failed {
		t.spans[len(t.spans)-1].To = m.now
		t.status = m.statusOf(t)
		return nil
	}
	at := m.enteredAt(t, last, before, known)
	change := &Change{At: at, Name: machine.label(last.Allocation), To: machine.doing(), before: last, now: machine}
	if known {
		old := &t.spans[len(t.spans)-1]
		old.To = at
		change.From = old.Doing
		if old.InProgress {
			change.After = old.length()
		}
	}
	if machine.Failed {
		change.Reason = machine.Why.Line()
	}
	t.spans = append(t.spans, Span{
		Doing: machine.doing(), State: machine.looks(), From: at, To: m.now, InProgress: machine.InProgress,
		Failed: machine.Failed,
	})
	change.Ended = t.end(last, at, known)
	m.note(t, last, at, first)
	if first {
		return nil
	}
	return change
}

// end returns the operation that has ended when a machine did something else, nil if none has, and notes the begin of the next one.
func (t *track) end(last Machine, at time.Time, known bool) *Ended {
	failed := t.Failed && !last.Failed
	over := last.Operation != "" && last.Operation != t.Operation && !t.gone()
	var ended *Ended
	if failed || over {
		// a change of power leaves a failed machine as it was
		ended = &Ended{Operation: last.Operation, Failed: failed, Step: t.Step, Reason: t.Why.Reason}
		if !t.opened.IsZero() {
			ended.Took = at.Sub(t.opened)
		}
	}
	switch {
	case t.Operation == "" || !known:
		t.opened = time.Time{}
	case t.Operation != last.Operation:
		t.opened = at
	}
	return ended
}

// Forget forgets what machines did before a time, and the machines that have not been in a list since.
func (m *Model) Forget(before time.Time) {
	if m.began.Before(before) {
		m.began = before
	}
	for id, t := range m.tracks {
		last := len(t.spans) - 1
		if t.gone() && t.spans[last].From.Before(before) {
			delete(m.tracks, id)
			continue
		}
		kept := slices.IndexFunc(t.spans, func(s Span) bool { return !s.To.Before(before) })
		if kept < 0 {
			kept = last
		}
		t.spans = slices.Clone(t.spans[kept:])
	}
}

// coarse is how much earlier than it happened Ironic may note a change: a database may keep whole seconds.
const coarse = time.Second

// enteredAt returns when a machine entered its present state: the time that Ironic has noted, if it is after the sample before. A
// machine that was never seen before has been in its state for longer than the model can show.
func (m *Model) enteredAt(t *track, last Machine, before time.Time, known bool) time.Time {
	switch {
	case !known && t.InProgress && t.Power == "" && t.Since.Before(m.now):
		return t.Since
	case t.Phase() != last.Phase() && t.Since.After(before.Add(-coarse)) && t.Since.Before(m.now):
		if t.Since.Before(before) {
			return before
		}
		return t.Since
	}
	return m.now
}

// note updates status, touch and the times of the operation.
func (m *Model) note(t *track, last Machine, at time.Time, first bool) {
	if t.InProgress || !first {
		t.touched = true
	}
	if t.InProgress && !last.InProgress {
		t.began = at
	}
	old := t.status
	t.status = m.statusOf(t)
	switch ended := t.status == Done || t.status == Failed; {
	case !ended:
		t.ended = time.Time{}
	case !first && old != Done && old != Failed:
		t.ended = at
		if t.began.IsZero() {
			t.began = at // the operation was shorter than the interval
		}
	}
}

func (m *Model) statusOf(t *track) Status {
	switch {
	case t.State == stateLeft, t.State == stateDeleted && m.goal != "" && m.goal != GoalDeleted:
		return Resting
	case t.InProgress:
		return InProgress
	case t.Failed:
		return Failed
	case m.goal != "" && t.State == string(m.goal):
		return Done
	case m.goal != "" || t.Pending:
		return Waiting
	case t.touched:
		return Done
	}
	return Resting
}

// noteIdle notes since when nothing is in progress. A run that begins after a pause forgets how fast the last one was.
func (m *Model) noteIdle() {
	for _, t := range m.tracks {
		if t.InProgress {
			if !m.idleSince.IsZero() && m.now.Sub(m.idleSince) > pauseOfRuns {
				m.forgetEnds()
			}
			m.idleSince = time.Time{}
			return
		}
	}
	if m.idleSince.IsZero() {
		m.idleSince = m.now
	}
}

func (m *Model) forgetEnds() {
	for _, t := range m.tracks {
		t.ended = time.Time{}
	}
}

// Idle returns for how long nothing has been in progress, by the samples.
func (m *Model) Idle() time.Duration {
	if m.idleSince.IsZero() {
		return 0
	}
	return m.now.Sub(m.idleSince)
}
