// Package conductor is Ironic's conductor with its database: nodes, their ports and allocations, and what happens to them, at a request or
// by themselves as time passes. It knows no requests.
package conductor

import (
	"container/heap"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/neutron"
)

// Conductor is the only conductor of a server. Its zero value knows no node. It is not safe for concurrent use, and starts no goroutine:
// its events run in CatchUp.
type Conductor struct {
	Settings

	Now      time.Time // time of the event or request that the server handles
	events   eventQueue
	sequence int
	Happened int // events that have run

	Nodes       []*Node // in order of creation
	NodeByUUID  map[string]*Node
	NodeByName  map[string]*Node
	Ports       []*Port
	PortByMAC   map[string]*Port
	switches    map[string]any // what the switches have, by "switch_id port_id"
	Allocations []*Allocation

	Groups  func(n *Node) []Group // the port groups of a node
	Neutron *neutron.Neutron

	visits []visit
	holds  []*hold
}

// Settings are the fields of the server that concern the conductor. See there.
type Settings struct {
	MaxMinor            int // the highest API version is 1.MaxMinor
	StepTime            time.Duration
	UnlockDelay         time.Duration
	ParentNodeDefect    bool
	MaxConcurrentDeploy int
	MaxConcurrentClean  int
	DiscoveryKeepsPower bool
	FastTrack           bool
	SwitchPorts         bool
	Answers             func(bmc string) bool
	Fail                func(n *Node, verb string) string
	Abandons            func(n *Node, verb string) bool
	Skips               func(step string) bool
	LLDP                func(mac string) []any
	ParsesLLDP          bool
	Disks               func(n *Node) []*machine.Disk
	Writes              func(n *Node, serial, what string)
	ImageFault          func(url string) string
	CleaningSteps       func(n *Node) (steps []any, noRamdisk bool, err error) // of the runbook by which a node is cleaned; nil: none
}

// legacy reports whether the conductor behaves as Ironic 21.4.
func (c *Conductor) legacy() bool { return c.MaxMinor <= api.LegacyMinor }

// hold keeps nodes in transient states, and power changes from ending.
type hold struct {
	states []string
	kept   []func() // the ends of phases and power changes, in the order in which they were due
}

// Hold keeps nodes in transient states, or all changes without states, until letGo is called.
func (c *Conductor) Hold(states []string) (letGo func()) {
	h := &hold{states: states}
	c.holds = append(c.holds, h)
	return func() {
		c.holds = slices.DeleteFunc(c.holds, func(other *hold) bool { return other == h })
		for _, end := range h.kept {
			c.After(0, end)
		}
	}
}

// keeps reports whether a hold keeps a node in a transient state or in a change to a power state. Then it remembers what ends that.
func (c *Conductor) keeps(in string, end func()) bool {
	for _, h := range c.holds {
		if len(h.states) == 0 || slices.Contains(h.states, in) {
			h.kept = append(h.kept, end)
			return true
		}
	}
	return false
}

// event is an action of the conductor at a point in time.
type event struct {
	at    time.Time
	order int // breaks ties: first scheduled, first run
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

// After schedules run for d after Now.
func (c *Conductor) After(d time.Duration, run func()) {
	c.sequence++
	heap.Push(&c.events, event{at: c.Now.Add(d), order: c.sequence, run: run})
}

// CatchUp runs all events that are due, each at its own time.
func (c *Conductor) CatchUp(now time.Time) {
	for len(c.events) > 0 && !c.events[0].at.After(now) {
		e, ok := heap.Pop(&c.events).(event)
		if !ok {
			return
		}
		c.Now = e.at
		c.Happened++
		e.run()
	}
	c.Now = now
}
