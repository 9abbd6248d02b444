package simulate_test

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// members are those of the one rollout group of a site.
type members struct {
	most   int           // that may be away at once
	pause  time.Duration // that a member runs before the next one
	spaces []*workspace
	mu     sync.Mutex
	off    bool                // other clients work on machines, too, and nothing is checked
	calm   bool                // no run is disturbed
	away   map[string]*absence // by workspace and address
}

// absence is a member that a run has taken away.
type absence struct {
	sent
	space    *workspace
	made     *plan // that the run executes
	address  string
	instance string    // the reservation
	replaced *instance // its former deployment; nil: it is only rebuilt or restarted
	next     string    // the node of the new deployment
}

// chooseOrder chooses the rollout of a life, in the provider block or on the deployments.
func (w *wish) chooseOrder(block object, spaces ...*workspace) {
	s := w.site
	switch s.below(4) {
	case 0:
	case 1:
		block["rollout"] = object{"canary": s.below(2), "max_failures": s.below(3)}
	case 2:
		w.order = object{"canary": 1 + s.below(2), "max_failures": 1 + s.below(3)}
	default:
		w.chooseGroup(spaces...)
	}
	s.tell("rollout: %v, in the provider block: %v", w.order, block["rollout"])
}

// chooseGroup makes the deployments of a life members of a group.
func (w *wish) chooseGroup(spaces ...*workspace) {
	s := w.site
	g := &members{
		most: 1 + s.below(2), pause: []time.Duration{0, 0, 45 * time.Second}[s.below(3)], spaces: spaces,
		away: map[string]*absence{},
	}
	w.order, s.members = object{"group": "databases", "max_unavailable": g.most}, g
	if g.pause > 0 {
		w.order["pause"] = g.pause.String()
	}
	if s.below(4) == 0 {
		w.order["canary"] = 1
	}
	if s.below(4) == 0 {
		w.order["max_failures"] = s.below(3)
	}
}

// inOrder adds what a deployment says about its changes.
func (w *wish) inOrder(u *useWish, settings object) object {
	if w.order != nil {
		settings["rollout"] = cloned(w.order)
	}
	if u.replaced {
		settings["on_change"] = "replace"
	}
	return settings
}

// serviced adds what a host says about changes of its BIOS settings.
func (w *wish) serviced(h *hostWish, settings object) object {
	if h.bios > 0 {
		settings["bios_settings"] = object{"ProcVirtualization": []string{"Enabled", "Disabled"}[h.bios%2]}
		settings["hardware_changes"] = object{"on_active": "service", "rollout": cloned(w.order)}
	}
	return settings
}

// begin records what a run executes; nil: it has ended.
func (w *workspace) begin(made *plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = made
}

// forgetTurns begins to check the runs of a year in which something happens.
func (s *site) forgetTurns(all ...trouble) {
	if s.members == nil {
		return
	}
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	clear(s.members.away)
	s.members.off, s.members.calm = false, true
	for _, d := range all {
		s.members.off = s.members.off || d.others
		s.members.calm = s.members.calm && d == trouble{}
	}
}

// checkTurn checks that a verb takes away no more members of the group than may be away.
func (s *site) checkTurn(v sent) {
	g := s.members
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.absenceOf(v)
	if a == nil || g.off {
		return
	}
	n, _ := s.fake.Node(v.node)
	a.instance = n.InstanceUUID
	me := a.space.name + " " + a.address
	var others []string
	seen := map[string]bool{v.node: true} // a host and a deployment may have the same machine
	for of, other := range g.away {
		if why := s.isAway(other); of != me && !seen[other.node] && why != "" {
			seen[other.node] = true
			others = append(others, of+" ("+why+")")
		}
	}
	g.away[me] = a
	if len(others) >= g.most {
		slices.Sort(others)
		s.broken("%s takes %s away with %s, though %s are away, and at most %d may be", v.run, me, v.target,
			strings.Join(others, ", "), g.most)
	}
}

// absenceOf returns the member that a verb takes away; nil if it takes none away that has run before.
func (g *members) absenceOf(v sent) *absence {
	if v.state != "active" {
		return nil
	}
	for _, w := range g.spaces {
		w.mu.Lock()
		now, made := w.now, w.made
		w.mu.Unlock()
		if !strings.HasPrefix(v.run, w.name+"/") || made == nil {
			continue
		}
		for address, i := range now {
			c := made.changes[address]
			switch {
			case i.node() != v.node || c == nil:
			case kindName(address) == "metal_host" && c.action == update && v.target == "service" && c.raises("cleanings"):
				return &absence{sent: v, space: w, made: made, address: address}
			case kindName(address) != "metal_deployment":
			case c.action == replace && v.target == "deleted":
				return &absence{sent: v, space: w, made: made, address: address, replaced: i, next: c.next(v.node)}
			case c.action == update && moves(v.target) && v.target != "power on" && (c.raises("restarts") || c.raises("rebuilds")):
				return &absence{sent: v, space: w, made: made, address: address}
			}
		}
	}
	return nil
}

// next returns the node of the deployment that replaces another one; that of the former one if it is not known.
func (c *change) next(former string) string {
	if id := c.planned.GetAttr("node_id"); id.IsKnown() && !id.IsNull() {
		return id.AsString()
	}
	return former
}

// isAway says why a member is away; "": it is not.
func (s *site) isAway(a *absence) string {
	n, _ := s.fake.Node(a.node)
	text, _ := n.Raw["provision_updated_at"].(string)
	since, _ := time.Parse(time.RFC3339, text)
	next, _ := s.fake.Node(a.next)
	if a.replaced != nil {
		a.space.mu.Lock()
		defer a.space.mu.Unlock()
		if now := a.space.now[a.address]; a.space.made == a.made && next.ProvisionState != "active" && (now == nil || now == a.replaced) {
			return "undeployed, and not deployed again"
		}
		return ""
	}
	switch {
	case n.InstanceUUID != a.instance:
		return ""
	case n.ProvisionState != "active" || n.TargetPowerState != "":
		return n.ProvisionState + " " + n.TargetPowerState
	case s.members.calm && (a.target == "rebuild" || a.target == "service") && time.Since(since) < s.members.pause-2*time.Second:
		return "in its pause"
	}
	return ""
}
