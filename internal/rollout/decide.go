package rollout

import (
	"maps"
	"slices"
	"time"
)

// Reason says why a machine is not started in this run.
type Reason string

// The reasons.
const (
	TooManyFailures Reason = "failures"    // as many have failed as may
	CanaryFailed    Reason = "canary"      // a canary has failed
	TooManyAway     Reason = "unavailable" // no run works on the members that are away
	NoPlace         Reason = "place"       // another member needs its place in Terraform's queue
)

// Refusal says why a machine is not started.
type Refusal struct {
	Reason Reason
	Names  []string // of the machines that have failed, or are away
}

// Decision says what the waiting members do now.
type Decision struct {
	Start  []string           // IDs, in order
	Refuse map[string]Refusal // by ID
	Again  time.Time          // when to decide again although nothing has happened; zero: never
}

func (d *Decision) soonest(at time.Time) {
	if d.Again.IsZero() || at.Before(d.Again) {
		d.Again = at
	}
}

// Decide says which of the waiting members may start now. It changes nothing: the caller calls Start, Leave and Yield for what it does.
// others are the members that other runs work on, or have left away.
func (g *Group) Decide(now time.Time, others []Absence) Decision {
	d := Decision{Refuse: map[string]Refusal{}}
	p := progress{Group: g, now: now, away: g.away(now, others), most: g.Most(others)}
	var left []Member
	for _, m := range g.queue() {
		if why, stopped := g.stopped(m); stopped {
			d.Refuse[m.ID] = why
			continue
		}
		at, waits := p.waits(m)
		if waits {
			left = append(left, m)
			if !at.IsZero() {
				d.soonest(at)
			}
			continue
		}
		p.start(m)
		d.Start = append(d.Start, m.ID)
	}
	if len(left) > 0 {
		g.decideLeft(&d, left, p.away, now)
	}
	return d
}

// progress is how far a group is, with the members that a decision starts.
type progress struct {
	*Group
	now     time.Time
	away    map[string]Absence
	most    int // members that may be away
	started []Member
}

// waits reports whether a member must wait, and until when; zero: until something happens.
func (p *progress) waits(m Member) (until time.Time, waits bool) {
	first := p.earliest(m)
	switch {
	case m.Change == Check:
		return time.Time{}, false
	case p.now.Before(first):
		return first, true
	case !p.inCanaries(m.Change) && p.now.Before(p.trial(m.Change).rested):
		return p.trial(m.Change).rested, true
	}
	return time.Time{}, p.inCanaries(m.Change) && p.canariesTried(m.Change) >= p.rules.Canary ||
		p.counts(m.Change) && !p.trial(m.Change).succeeded && p.tried(m.Change) >= p.rules.MaxFailures ||
		p.isFull(m)
}

// earliest returns when a member may start at the earliest, so that those that are to go first have come by then; zero: at once.
func (p *progress) earliest(m Member) time.Time {
	var wait time.Duration
	if p.inCanaries(m.Change) {
		wait = checksFor
	}
	if m.Failures > 0 {
		wait += gatherFor
	}
	if wait == 0 {
		return time.Time{}
	}
	return m.Queued.Add(wait)
}

func (p *progress) start(m Member) {
	p.started = append(p.started, m)
	if m.Change != FirstDeployment {
		p.away[m.ID] = Absence{ID: m.ID, Name: m.Name, Working: true}
	}
}

// canariesTried returns how many canaries of a change are ready, at work or started now.
func (p *progress) canariesTried(c Change) int {
	n := p.trial(c).canaries
	for _, w := range p.working {
		if w.canary && p.trial(w.Change) == p.trial(c) {
			n++
		}
	}
	for _, m := range p.started {
		if p.trial(m.Change) == p.trial(c) {
			n++
		}
	}
	return n
}

// tried returns how many members have failed with a change, or are changed so now and count if they fail.
func (p *progress) tried(c Change) int {
	n := p.trial(c).failures
	for _, w := range p.working {
		if p.counts(w.Change) && p.trial(w.Change) == p.trial(c) {
			n++
		}
	}
	for _, m := range p.started {
		if p.counts(m.Change) && p.trial(m.Change) == p.trial(c) {
			n++
		}
	}
	return n
}

// stopped reports whether the rollout has stopped for a member.
func (g *Group) stopped(m Member) (Refusal, bool) {
	gone := g.working[undeployed(m.ID)]
	switch {
	case m.Change == Check:
	case gone != nil && m.Change != FirstDeployment: // nothing runs on it: its host would take its turn away
		return Refusal{Reason: NoPlace, Names: []string{gone.Name}}, true
	case g.broken != "":
		return Refusal{Reason: CanaryFailed, Names: []string{g.broken}}, true
	case g.counts(m.Change) && max(g.trials[true].failures, g.trials[false].failures) >= g.rules.MaxFailures:
		return Refusal{Reason: TooManyFailures, Names: g.failedNames()}, true
	}
	return Refusal{}, false
}

func (g *Group) failedNames() []string {
	var names []string
	for _, m := range g.failed {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// isFull reports whether a member must wait because others are away, or because another resource works on its machine. One that has failed
// takes nothing away; one in its pause does.
func (p *progress) isFull(m Member) bool {
	a, is := p.away[m.ID]
	switch {
	case is && a.Working && a.Service != (m.Change == Service):
		return true
	case p.rules.MaxUnavailable == 0, m.Change == FirstDeployment, m.Away, is && a.Failed:
		return false
	case is:
		return len(p.away)-1 >= p.most
	}
	return len(p.away) >= p.most
}

// decideLeft decides about the members that cannot start now: they wait as long as anything can let them start.
func (g *Group) decideLeft(d *Decision, left []Member, away map[string]Absence, now time.Time) {
	if g.yields(d, left, now) {
		return
	}
	hope := len(d.Start) > 0 || len(g.working) > 0 || !d.Again.IsZero()
	for _, a := range away {
		if now.Before(a.Until) {
			d.soonest(a.Until)
		}
		hope = hope || a.Working || now.Before(a.Until)
	}
	if hope {
		return
	}
	var names []string
	for _, a := range away {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	for _, m := range left {
		if at := m.Queued.Add(graceFor); now.Before(at) {
			d.soonest(at)
			continue
		}
		d.Refuse[m.ID] = Refusal{Reason: TooManyAway, Names: names}
	}
}

// yields lets the last member give up its place if a member is undeployed and its new deployment does not begin: Terraform runs only as
// many operations at once as -parallelism says, and the waiting members may be all of them.
func (g *Group) yields(d *Decision, left []Member, now time.Time) (refused bool) {
	for _, w := range slices.Collect(maps.Values(g.working)) {
		if w.gone.IsZero() {
			continue
		}
		at := w.gone.Add(yieldAfter)
		if next := g.yielded.Add(yieldEach); next.After(at) {
			at = next
		}
		if now.Before(at) {
			d.soonest(at)
			continue
		}
		d.Refuse[left[len(left)-1].ID] = Refusal{Reason: NoPlace, Names: []string{w.Name}}
		return true
	}
	return false
}
