package forecast

import (
	"container/heap"
	"time"
)

// clock is virtual time: it goes from event to event.
type clock struct {
	now    time.Time
	events events
	made   int
}

type event struct {
	at time.Time
	n  int // of two at the same time, the one that was scheduled first comes first
	do func()
}

func (c *clock) after(d time.Duration, do func()) { c.on(c.now.Add(d), do) }

// on schedules something at a time; at once if that has passed.
func (c *clock) on(at time.Time, do func()) {
	if at.Before(c.now) {
		at = c.now
	}
	c.made++
	heap.Push(&c.events, event{at: at, n: c.made, do: do})
}

// step does what happens next, and returns how long that takes to come. It returns false if nothing happens any more.
func (c *clock) step(before func(passed time.Duration)) bool {
	if len(c.events) == 0 {
		return false
	}
	first := c.events[0].at
	before(first.Sub(c.now))
	c.now = first
	for len(c.events) > 0 && c.events[0].at.Equal(first) {
		if next, is := heap.Pop(&c.events).(event); is {
			next.do()
		}
	}
	return true
}

// events are a heap.
type events []event

// Len is that of a heap.
func (e events) Len() int { return len(e) }

// Less is that of a heap.
func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].n < e[j].n
}

// Swap is that of a heap.
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push is that of a heap.
func (e *events) Push(x any) {
	if one, is := x.(event); is {
		*e = append(*e, one)
	}
}

// Pop is that of a heap.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
