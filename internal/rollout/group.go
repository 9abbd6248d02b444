package rollout

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Times of a group.
const (
	checksFor  = 2 * time.Second        // before a canary starts, so that the check of one that was not ready comes first
	gatherFor  = 300 * time.Millisecond // before a machine that has failed before may start, so that others go first
	graceFor   = 10 * time.Second       // before machines give up which nothing can let start: the one that they wait for may still come
	yieldAfter = 10 * time.Second       // before machines give up their places for a new deployment that does not begin
	yieldEach  = time.Second            // between two machines that give up their places
)

// Outcome is how a turn has ended.
type Outcome int

// The outcomes.
const (
	Ready     Outcome = iota // the machine has changed, and is ready
	Failed                   // the operation has failed, or the machine is not ready
	Untouched                // nothing was sent to the machine, or it is not known how it ended: counts as nothing
)

// Group is what a run knows of the members of a group. It is not safe for concurrent use.
type Group struct {
	rules   Rules
	waiting map[string]Member
	working map[string]*work
	failed  map[string]Member // by ID
	rests   map[string]rest   // members that are ready
	tried   map[string]bool   // members that this run has changed
	trials  map[bool]*trial   // of services, and of all other changes
	broken  string            // the canary that has failed; "": none
	yielded time.Time         // when a member gave up its place last
}

// trial is what a run has learnt of one kind of change. A machine that bears new firmware tells nothing of a new image.
type trial struct {
	failures  int // since the last success
	succeeded bool
	canaries  int       // that are ready, and whose pause may not have ended yet
	rested    time.Time // when the pause of the last canary ends
}

// work is a member whose turn it is.
type work struct {
	Member
	canary bool
	gone   time.Time // since when it is undeployed and its new deployment has not begun; zero: it is at work
	next   string    // the node of its new deployment, as configured; "": not known
}

// rest is the pause of a member that is ready.
type rest struct {
	until   time.Time
	service bool // the turn was that of its host
}

// NewGroup returns a group without members.
func NewGroup(rules Rules) *Group {
	return &Group{
		rules: rules, waiting: map[string]Member{}, working: map[string]*work{}, failed: map[string]Member{},
		rests: map[string]rest{}, tried: map[string]bool{}, trials: map[bool]*trial{true: {}, false: {}},
	}
}

func (g *Group) trial(c Change) *trial { return g.trials[c == Service] }

// undeployed is the key in working of a member that is undeployed for a new deployment: its node may get another turn meanwhile.
func undeployed(id string) string { return "undeployed " + id }

// Has reports whether a member waits for its turn, or has it and is not undeployed.
func (g *Group) Has(id string) bool {
	_, waits := g.waiting[id]
	return waits || g.working[id] != nil
}

// Join adds a member that waits.
func (g *Group) Join(m Member) {
	g.waiting[m.ID] = m
}

// Leave removes a member that does not wait any more. Nothing was sent to it.
func (g *Group) Leave(id string) { delete(g.waiting, id) }

// Yield removes a member that gives up its place.
func (g *Group) Yield(id string, now time.Time) {
	g.Leave(id)
	g.yielded = now
}

// Start gives a waiting member its turn.
func (g *Group) Start(id string) {
	m := g.waiting[id]
	delete(g.waiting, id)
	g.working[id] = &work{Member: m, canary: g.inCanaries(m.Change)}
}

// End ends the turn of a member.
func (g *Group) End(id string, how Outcome, now time.Time) {
	w := g.working[id]
	delete(g.working, id)
	if w == nil || how == Untouched {
		return
	}
	g.tried[id] = true
	delete(g.failed, id)
	if how == Failed {
		g.failed[id] = w.Member
		if w.canary {
			g.broken = w.Name
		}
		if g.counts(w.Change) {
			g.trial(w.Change).failures++
		}
		return
	}
	t := g.trial(w.Change)
	t.failures, t.succeeded = 0, true
	g.rests[id] = rest{until: now.Add(g.rules.Pause), service: w.Change == Service}
	if w.canary {
		t.canaries++
		t.rested = now.Add(g.rules.Pause)
	}
}

// Hand says that a member is undeployed, and that another deployment is about to take its place on a node; "": it is not known on which
// (reference/rollout.md#replacements).
func (g *Group) Hand(id, next string, now time.Time) {
	if w := g.working[id]; w != nil {
		delete(g.working, id)
		w.gone, w.next = now, next
		g.working[undeployed(id)] = w
	}
}

// Take gives a new deployment on a node, as configured, the turn of the member that was undeployed for it, and returns the ID of that
// member. It returns false if there is none.
func (g *Group) Take(m Member, node string) (was string, ok bool) {
	var found *work
	for _, w := range g.working {
		if !w.gone.IsZero() && (w.next == node || w.next == "") && (found == nil || w.fits(node, found)) {
			found = w
		}
	}
	if found == nil {
		return "", false
	}
	delete(g.working, undeployed(found.ID))
	m.Change = Replacement
	g.working[m.ID] = &work{Member: m, canary: found.canary}
	return found.ID, true
}

// fits reports whether a new deployment on a node rather belongs to one member that was undeployed than to another.
func (w *work) fits(node string, than *work) bool {
	if (w.next == node) != (than.next == node) {
		return w.next == node
	}
	return cmp.Or(w.gone.Compare(than.gone), cmp.Compare(w.ID, than.ID)) < 0
}

func (g *Group) counts(c Change) bool {
	return g.rules.MaxFailures > 0 && (c != FirstDeployment || g.rules.First)
}

// inCanaries reports whether the canaries of a change are not all ready yet.
func (g *Group) inCanaries(c Change) bool { return g.trial(c).canaries < g.rules.Canary }

// away returns the members that are away, or in their pause, as far as this run and the others know.
func (g *Group) away(now time.Time, others []Absence) map[string]Absence {
	away := map[string]Absence{}
	for _, o := range others {
		ours := g.working[o.ID] != nil || g.working[undeployed(o.ID)] != nil
		last, ready := g.rests[o.ID]
		if !ours && (!ready || last.service != o.Service) && o.isAway(now) && !away[o.ID].Working {
			away[o.ID] = o
		}
	}
	for id, last := range g.rests {
		if _, is := away[id]; !is && now.Before(last.until) {
			away[id] = Absence{ID: id, Until: last.until}
		}
	}
	for id, m := range g.failed {
		if m.Change == FirstDeployment {
			continue // it was never there
		}
		away[id] = Absence{ID: id, Name: m.Name, Failed: true}
	}
	for id, w := range g.working {
		if w.Change != FirstDeployment {
			away[id] = Absence{ID: id, Name: w.Name, Working: true}
		}
	}
	return away
}

// Most returns how many members may be away: the strictest rule of the runs that work on the group holds.
func (g *Group) Most(others []Absence) int {
	most := g.rules.MaxUnavailable
	for _, o := range others {
		if o.Most > 0 {
			most = min(most, o.Most)
		}
	}
	return most
}

// Away returns how many members count as away now, for this run and the others.
func (g *Group) Away(now time.Time, others []Absence) int { return len(g.away(now, others)) }

func (g *Group) queue() []Member {
	return slices.SortedFunc(maps.Values(g.waiting), Member.before)
}

// Working returns the names of the members whose turn it is, sorted.
func (g *Group) Working() []string {
	var names []string
	for _, w := range g.working {
		names = append(names, w.Name)
	}
	slices.Sort(names)
	return names
}

// Tried returns how many members this run has changed.
func (g *Group) Tried() int { return len(g.tried) }

// IsCanary reports whether a member has its turn, or would begin it now, as one of those that go first.
func (g *Group) IsCanary(id string) bool {
	if w := g.working[id]; w != nil {
		return w.canary
	}
	m, waits := g.waiting[id]
	return waits && g.inCanaries(m.Change)
}

// Pause returns how long a member runs before the next one starts.
func (g *Group) Pause() time.Duration { return g.rules.Pause }
