package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// Row is a machine in a view.
type Row struct {
	Name, Allocation string // of the node, and of the allocation that has it
	Doing            string
	State            string // what the machine looks like
	Status           Status
	For              time.Duration // how long it has been doing that
	Reason           string        // of a failure
	Spans            []Span        // what it did since the model began, oldest first; the last one ends now
}

// Label is the name of a machine for people, with that of its allocation.
func (r Row) Label() string { return labelled(r.Name, r.Allocation) }

// View is what a model knows at a moment.
type View struct {
	Now, Began time.Time
	Goal       Goal
	Sample     Sample // the last one
	Selected   int    // machines of the selection
	Total      int    // machines that count: those that are done, in progress, failed or waiting, and others up to the announced total
	Done       int
	Resting    int // machines of the selection that do not count, because no operation on them has begun
	Lost       int // machines that the model has seen and others have reserved, or that are deleted without having reached the goal

	Waiting, InProgress, Failed []Row    // those in progress longest come first, then by name
	Recent                      []Row    // done while the model watched, the last one first
	Moved                       []Row    // those that count and have changed, by name
	Stopped                     []string // rollout groups that wait until a member is repaired, sorted
	Pausing                     []string // rollout groups that pause between two members, and until when, sorted

	Left      time.Duration // the estimate of the end, if LeftKnown
	LeftKnown bool
}

// View returns the view at a moment, which may be later than the last sample.
func (m *Model) View(now time.Time) View {
	if now.Before(m.now) {
		now = m.now
	}
	v := View{Now: now, Began: m.began, Goal: m.goal, Sample: m.sample}
	var ends []end
	for _, t := range m.tracks {
		if !t.gone() {
			v.Selected++
		}
		if t.Stops != "" && !slices.Contains(v.Stopped, t.Stops) {
			v.Stopped = append(v.Stopped, t.Stops)
		}
		if t.Pauses != "" && !slices.Contains(v.Pausing, t.Pauses) {
			v.Pausing = append(v.Pausing, t.Pauses)
		}
		row := m.row(t, now)
		switch t.status {
		case Resting:
			if t.gone() {
				v.Lost++
			} else {
				v.Resting++
			}
		case Waiting:
			v.Waiting = append(v.Waiting, row)
		case InProgress:
			v.InProgress = append(v.InProgress, row)
		case Failed:
			v.Failed = append(v.Failed, row)
		case Done:
			v.Done++
			if t.touched {
				v.Recent = append(v.Recent, row)
			}
		}
		if t.status != Resting && (t.touched || t.Failed) {
			v.Moved = append(v.Moved, row)
		}
		if !t.ended.IsZero() {
			ends = append(ends, end{t.began, t.ended})
		}
	}
	slices.Sort(v.Stopped)
	slices.Sort(v.Pausing)
	v.Total = max(v.counted(), m.total)
	v.Left, v.LeftKnown = estimate(ends, v.Total-v.Done-len(v.Failed), now)
	for _, rows := range [][]Row{v.Waiting, v.InProgress, v.Failed} {
		slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(-cmp.Compare(a.For, b.For), words.CompareNames(a.Name, b.Name)) })
	}
	slices.SortFunc(v.Recent, func(a, b Row) int { return cmp.Or(cmp.Compare(a.For, b.For), words.CompareNames(a.Name, b.Name)) })
	slices.SortFunc(v.Moved, func(a, b Row) int { return words.CompareNames(a.Name, b.Name) })
	return v
}

func (m *Model) row(t *track, now time.Time) Row {
	spans := slices.Clone(t.spans)
	last := &spans[len(spans)-1]
	last.To = now
	row := Row{
		Name: t.Name, Allocation: t.Allocation, Doing: t.doing(), State: t.looks(), Status: t.status,
		For: last.length(), Spans: spans,
	}
	if t.Failed {
		row.Reason = t.Why.Line()
		if len(spans) == 1 {
			row.For = max(0, now.Sub(t.Since)) // it failed before the model began
		}
	}
	return row
}
