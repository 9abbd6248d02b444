// Package conductor is Ironic's conductor with its database: nodes, their ports and allocations, and what happens to them, at a request or
// by themselves as time passes. It knows no requests.
package conductor

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic/api"
)

// Conductor is the only conductor of a server. Its zero value knows no node. It is not safe for concurrent use, and starts no goroutine: its
// events run in CatchUp.
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
	Allocations []*Allocation

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
	Fail                func(n *Node, verb string) string
	Abandons            func(n *Node, verb string) bool
	Skips               func(step string) bool
	LLDP                func(mac string) []any
	ParsesLLDP          bool
	ImageFault          func(url string) string
}

// legacy reports whether the conductor behaves as Ironic 21.4.
func (c *Conductor) legacy() bool { return c.MaxMinor <= api.LegacyMinor }
