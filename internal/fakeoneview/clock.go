package fakeoneview

import (
	"container/heap"
	"strconv"
	"time"
)

// event is an action of the appliance at a point in time.
type event struct {
	at     time.Time
	order  int    // breaks ties: first scheduled, first run
	before func() // hook of a test; runs without the lock, so that it can call the Server
	run    func()
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

// after schedules the hook before and then run for d after s.now.
func (s *Server) after(d time.Duration, before, run func()) {
	s.sequence++
	heap.Push(&s.events, event{at: s.now.Add(d), order: s.sequence, before: before, run: run})
}

// catchUp runs all events that are due, each at its own time.
func (s *Server) catchUp(now time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		e, ok := heap.Pop(&s.events).(event)
		if !ok {
			return
		}
		if e.before != nil {
			s.mu.Unlock()
			e.before()
			s.mu.Lock()
		}
		s.now = e.at
		e.run()
	}
	if now.After(s.now) {
		s.now = now
	}
}

// timestamp formats a time as OneView does.
func timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// milliseconds formats a time as OneView does in eTags.
func milliseconds(t time.Time) string {
	return strconv.FormatInt(t.UnixMilli(), 10)
}
