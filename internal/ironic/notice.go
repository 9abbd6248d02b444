package ironic

import (
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Notice is something that the user should know of a run, though nothing failed.
type Notice struct{ Summary, Detail string }

// stats remembers, for notices, what happened at the gate. The gate's lock protects it.
type stats struct {
	notices []Notice
	said    map[string]bool

	waited  int           // hosts that had to wait
	longest time.Duration // the longest wait
	others  int           // most slots that hosts of others took at once

	walks     int             // under way
	peak      int             // most at once
	hosts     map[string]bool // all that have walked
	endedAt   time.Time       // when the last walk ended
	refills   int             // how often another host that began soon after made it the most again
	saturated bool            // the limit was met
}

// Notices returns what there is to tell and has not been told yet. How many hosts have waited is told when no host of this run
// is walked any more, most often at its end, and again if it goes on and more have waited by then.
func (c *Client) Notices() []Notice {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 && g.stats.walks == 0 && g.stats.waited > 0 {
		g.stats.say(fmt.Sprintf("waited %d", g.stats.waited), Notice{
			fmt.Sprintf("Hosts waited for their turn: %d so far", g.stats.waited), // one that Terraform shows, though it has shown another
			fmt.Sprintf("The longest waited for a provisioning slot for %s. provisioning_limit.max_hosts is %d; others used up to %d of these slots.",
				g.stats.longest.Round(time.Second), g.limit.Max, g.stats.others),
		})
	}
	notices := g.stats.notices
	g.stats.notices = nil
	return notices
}

// say queues a notice once a run.
func (s *stats) say(key string, n Notice) {
	if s.said == nil {
		s.said = map[string]bool{}
	}
	if !s.said[key] {
		s.said[key] = true
		s.notices = append(s.notices, n)
	}
}

// admitted notes how long a host has waited. A wait that is shorter than a look at the fleet is no wait.
func (s *stats) admitted(waited, look time.Duration) {
	if waited > look {
		s.waited++
		s.longest = max(s.longest, waited)
	}
}

// decided notes who took slots, and warns of hosts that hang.
func (s *stats) decided(g *gate, d throttle.Decision, census throttle.Census, fleet map[string]*Node) {
	others := 0
	for _, b := range census.Busy {
		if !g.started[b.ID] {
			others++
		}
	}
	s.others = max(s.others, others)
	if len(d.Go) < len(g.waiting) {
		s.saturated = true
	}
	for _, b := range d.Stuck {
		node := fleet[b.ID]
		text := fmt.Sprintf("Node %s has been in state %q since %s, and does not count against provisioning_limit any more.",
			NodeLabel(node), node.ProvisionState, b.Since.UTC().Format(time.RFC3339))
		if node.LastError != "" {
			text += " Its last error: " + firstLine(node.LastError)
		}
		s.say("stuck:"+b.ID, Notice{"A host hangs", text})
	}
}

// notLocked warns that the lock record cannot be written.
func (s *stats) notLocked(err error) {
	s.say("lock", Notice{"The provisioning limit holds in this run only", fmt.Sprintf(
		"Ironic does not let this user write the lock record (a chassis) by which runs that share it keep to one limit: %v. "+
			"Hosts that others have put to work are counted all the same. Set coordination = \"process\" in provisioning_limit to do without the lock, "+
			"or ask for the right to create chassis.", firstLine(err.Error()))})
}

// soon is how long after one resource has ended Terraform has begun the next one's walk, requests before it included.
const soon = 5 * time.Second

// begin and end count walks, to tell when Terraform's own limit is what leaves slots unused: hosts come in a third round, be
// it in step or one by one, and never more of them at once.
func (g *gate) begin(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.stats
	if s.hosts == nil {
		s.hosts = map[string]bool{}
	}
	s.walks++
	if s.walks > s.peak {
		s.peak, s.refills = s.walks, 0
	} else if !s.hosts[id] && s.walks == s.peak && time.Since(s.endedAt) < soon {
		s.refills++
	}
	s.hosts[id] = true
}

func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.stats
	s.endedAt = time.Now()
	s.walks--
	if g.limit.Max > 0 && s.refills > 1 && len(s.hosts) > 2*s.peak && s.peak < g.limit.Max && !s.saturated {
		s.say("parallelism", Notice{"Slots are unused", fmt.Sprintf(
			"Terraform works on %d hosts at a time, and provisioning_limit.max_hosts is %d. To use all slots run with -parallelism=%d or more.",
			s.peak, g.limit.Max, g.limit.Max+10)})
	}
}

// Capacity is who is at work on a site.
type Capacity struct {
	Max                        int // 0: no limit
	Busy                       int // hosts that take a slot
	Own, Others, Stuck, Exempt int // of the busy: started by this run, by others; not counted any more; at work without a slot
	Classes                    map[string]ClassCapacity
}

// ClassCapacity counts the nodes of a resource class.
type ClassCapacity struct{ Total, Available, Allocated, Maintenance, Failed int }

// CapacityOf counts a fleet.
func (c *Client) CapacityOf(fleet []Node) Capacity {
	g := c.gate
	byID := byUUID(fleet, func(n *Node) string { return n.UUID })
	census := g.census(byID)
	out := Capacity{Max: g.limit.Max, Classes: map[string]ClassCapacity{}}
	g.mu.Lock()
	stuck := map[string]bool{}
	for _, b := range throttle.Decide(g.limit.Limit, census, nil).Stuck {
		stuck[b.ID] = true
	}
	for _, b := range census.Busy {
		switch {
		case stuck[b.ID]:
			out.Stuck++
		case g.started[b.ID]:
			out.Own++
		default:
			out.Others++
		}
	}
	out.Busy = out.Own + out.Others
	g.mu.Unlock()
	for i := range fleet {
		node := &fleet[i]
		if busy(State(node.ProvisionState)) && g.exempt(node) {
			out.Exempt++
		}
		class := out.Classes[node.ResourceClass]
		class.add(node)
		out.Classes[node.ResourceClass] = class
	}
	return out
}

func (k *ClassCapacity) add(node *Node) {
	k.Total++
	switch {
	case node.Maintenance:
		k.Maintenance++
	case failed(State(node.ProvisionState)):
		k.Failed++
	case Deployed(node):
		k.Allocated++
	case State(node.ProvisionState) == nodes.Available:
		k.Available++
	}
}
