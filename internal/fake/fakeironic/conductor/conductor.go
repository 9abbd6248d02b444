// Package conductor is Ironic's conductor with its database: nodes, their ports and allocations, and what happens to them, at a request or
// by themselves as time passes. It knows no requests.
package conductor

import (
	"slices"
	"sort"
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
	events   []event   // the earliest first
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
	at  time.Time
	run func()
}

// After schedules run for d after Now: after what is due then already.
func (c *Conductor) After(d time.Duration, run func()) {
	e := event{at: c.Now.Add(d), run: run}
	place := sort.Search(len(c.events), func(i int) bool { return c.events[i].at.After(e.at) })
	c.events = slices.Insert(c.events, place, e)
}

// CatchUp runs all events that are due, each at its own time.
func (c *Conductor) CatchUp(now time.Time) {
	for len(c.events) > 0 && !c.events[0].at.After(now) {
		e := c.events[0]
		c.events = c.events[1:]
		c.Now = e.at
		c.Happened++
		e.run()
	}
	c.Now = now
}
