package forecast

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// group is a rollout group.
type group struct {
	*rollout.Group
	shown  Group
	steps  map[string]*step // that wait, by machine
	others []rollout.Absence
	again  time.Time // when it is decided again although nothing has happened
}

// groups are those of a run.
type groups struct {
	byKey   map[string]*group
	created map[string][]string // the nodes of new deployments that follow none, as in package turns
}

func newGroups() groups { return groups{byKey: map[string]*group{}, created: map[string][]string{}} }

// groupOf returns the group of a change.
func (e *engine) groupOf(t *Turn, settings rollout.Settings) *group {
	key := settings.Key(t.Change, t.Content)
	g := e.groups.byKey[key]
	if g == nil {
		g = &group{Group: rollout.NewGroup(settings.Rules()), steps: map[string]*step{}}
		g.shown = Group{Name: settings.Group, May: settings.MaxUnavailable}
		if g.shown.Name == "" {
			url, _, _ := strings.Cut(t.Content, " ")
			g.shown.Name = string(t.Change) + " " + cmp.Or(url, "with content that is not known yet")
		}
		if settings.MaxUnavailable > 0 && e.in.Settings.Limit.Coordination != throttle.CoordinationProcess {
			g.others = slices.Clone(e.in.Site.Away[settings.Group])
			e.awaitOthers(g)
		}
		e.groups.byKey[key] = g
	}
	return g
}

// awaitOthers lets the members come back that other runs work on, when their operations have ended.
func (e *engine) awaitOthers(g *group) {
	for _, o := range g.others {
		if !o.Working {
			continue
		}
		back := func() { g.others = slices.DeleteFunc(g.others, func(a rollout.Absence) bool { return a.ID == o.ID }) }
		if busy := e.slots.busy[o.ID]; busy != nil {
			if !busy.until.IsZero() {
				e.on(busy.until, back)
			}
			continue
		}
		if d, known := e.in.Times.Of(Deploy, ""); known {
			e.clock.in(d, back)
		}
	}
}

// takeTurn lets a step wait for its turn, if it needs one.
func (e *engine) takeTurn(s *step) {
	t := s.Turn
	if t == nil {
		e.next(s)
		return
	}
	settings := t.Settings
	if e.in.Settings.Canary != nil {
		settings.Canary = e.in.Settings.Canary
	}
	me := rollout.Member{ID: s.Machine.ID, Name: s.line.Name, Change: t.Change, Failures: s.Machine.Failures, Queued: e.now, Away: t.Away}
	if t.Change == rollout.FirstDeployment && e.follow(s, me, settings) {
		return
	}
	if !settings.Concerns(t.Change) || t.Change == rollout.Replacement && t.Away && !settings.Concerns(rollout.FirstDeployment) {
		e.next(s)
		return
	}
	g := e.groupOf(t, settings)
	g.Join(me)
	g.steps[me.ID], s.turn, s.phase, s.since = s, g, turning, e.now
	g.shown.Members++
}

// follow gives a new deployment the turn of the one that it replaces.
func (e *engine) follow(s *step, me rollout.Member, settings rollout.Settings) bool {
	for _, content := range []string{s.Turn.Content, ""} {
		if g := e.groups.byKey[settings.Key(rollout.Replacement, content)]; g != nil {
			if _, ok := g.Take(me, s.Turn.Node); ok {
				s.turn = g
				e.next(s)
				return true
			}
		}
	}
	key := settings.Key(rollout.Replacement, s.Turn.Content)
	e.groups.created[key] = append(e.groups.created[key], s.Turn.Node)
	return false
}

// decideTurns lets the machines start whose turn it is, and ends the steps of those that are not started.
func (e *engine) decideTurns() (some bool) {
	for _, key := range slices.Sorted(maps.Keys(e.groups.byKey)) {
		g := e.groups.byKey[key]
		if len(g.steps) == 0 {
			continue
		}
		d := g.Decide(e.now, g.others)
		for _, id := range slices.Sorted(maps.Keys(d.Refuse)) {
			s, why := g.steps[id], d.Refuse[id]
			delete(g.steps, id)
			if why.Reason == rollout.NoPlace {
				g.Yield(id, e.now)
			}
			g.Leave(id)
			s.turn, some = nil, true
			s.line.Turn = e.now.Sub(s.since)
			e.finish(s, NotStarted, reasonText(why))
		}
		for _, id := range d.Start {
			s := g.steps[id]
			delete(g.steps, id)
			g.Start(id)
			s.line.Turn, some = e.now.Sub(s.since), true
			e.next(s)
		}
		if !some && !d.Again.IsZero() && !d.Again.Equal(g.again) {
			g.again = d.Again
			e.on(d.Again, func() {})
		}
	}
	return some
}

func reasonText(why rollout.Refusal) string {
	switch why.Reason {
	case rollout.TooManyFailures:
		return "too many have failed: " + few(why.Names)
	case rollout.CanaryFailed:
		return "the canary has failed: " + few(why.Names)
	case rollout.TooManyAway:
		return "the group lacks " + few(why.Names) + " already"
	case rollout.NoPlace:
		return "-parallelism is lower than the number of members that wait"
	}
	return ""
}

// endTurn ends the turn of a step that has ended.
func (e *engine) endTurn(s *step) {
	g := s.turn
	switch {
	case g == nil:
	case s.line.Outcome == Failed:
		g.End(s.Machine.ID, rollout.Failed, e.now)
	case s.Removes && !e.isSucceeded(s):
		g.Hand(s.Machine.ID, s.Turn.Node, e.now)
	default:
		g.End(s.Machine.ID, rollout.Ready, e.now)
	}
}

// isSucceeded reports whether the deployment that replaces one was made before.
func (e *engine) isSucceeded(s *step) bool {
	key := s.Turn.Settings.Key(rollout.Replacement, s.Turn.Content)
	i := slices.Index(e.groups.created[key], s.Turn.Node)
	if i < 0 || s.Turn.Node == "" {
		return false
	}
	e.groups.created[key] = slices.Delete(e.groups.created[key], i, i+1)
	return true
}

// count remembers how many members were away at most.
func (g *groups) count(now time.Time) {
	for _, one := range g.byKey {
		one.shown.Most = max(one.shown.Most, one.Away(now, one.others))
	}
}

// all returns the groups in order.
func (g *groups) all() (all []Group) {
	for _, key := range slices.Sorted(maps.Keys(g.byKey)) {
		all = append(all, g.byKey[key].shown)
	}
	return all
}
