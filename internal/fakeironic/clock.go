package fakeironic

import (
	"container/heap"
	"time"
)

// event is something that the conductor does at a certain time.
type event struct {
	at    time.Time
	order int // breaks ties: first scheduled, first done
	run   func()
}

// eventQueue is a heap of events, the earliest first.
type eventQueue []event

func (q eventQueue) Len() int { return len(q) }

func (q eventQueue) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].order < q[j].order
	}
	return q[i].at.Before(q[j].at)
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *eventQueue) Push(x any) {
	if e, ok := x.(event); ok {
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// after schedules run for d after the moment that is being worked on.
func (s *Server) after(d time.Duration, run func()) {
	s.sequence++
	heap.Push(&s.events, event{at: s.now.Add(d), order: s.sequence, run: run})
}

// catchUp does all that is due by now, each thing at its own time.
func (s *Server) catchUp(now time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		e, ok := heap.Pop(&s.events).(event)
		if !ok {
			return
		}
		s.now = e.at
		e.run()
	}
	s.now = now
}

// timestamp writes a time as Ironic does.
func timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000-07:00")
}

// coarse cuts the fraction of a second off a timestamp, as the answer to a POST has it.
func coarse(stamp any) any {
	text, ok := stamp.(string)
	if !ok {
		return stamp
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return stamp
	}
	return t.UTC().Format("2006-01-02T15:04:05-07:00")
}

// coarseTimes cuts the fractions of seconds off the times of creation and change, as answers to POST and PATCH have them.
func coarseTimes(shown ordered) ordered {
	for i := range shown {
		if shown[i].key == "created_at" || shown[i].key == "updated_at" {
			shown[i].value = coarse(shown[i].value)
		}
	}
	return shown
}
