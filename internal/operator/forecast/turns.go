package forecast

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

type group struct {
	*rollout.Group
	shown   Group
	waiting map[string]candidate // by machine
	others  []rollout.Absence
	again   time.Time // when it is decided again although nothing has happened
}

// candidate is a machine that waits for its turn. One of its functions is called, with the time that it has waited.
type candidate struct {
	since  time.Time
	begin  func(waited time.Duration)
	refuse func(waited time.Duration, why string)
}

// groups are those of a run, as in package turns.
type groups struct {
	*clock
	in      *Input
	slots   *slots
	byKey   map[string]*group
	created map[string][]string // the nodes of new deployments that follow none
}

func newGroups(c *clock, in *Input, s *slots) *groups {
	return &groups{clock: c, in: in, slots: s, byKey: map[string]*group{}, created: map[string][]string{}}
}

func (g *groups) settings(t *Turn) rollout.Settings {
	settings := t.Settings
	if g.in.Settings.Canary != nil {
		settings.Canary = g.in.Settings.Canary
	}
	return settings
}

func (g *groups) of(t *Turn) *group {
	settings := g.settings(t)
	key := settings.Key(t.Change, t.Content)
	one := g.byKey[key]
	if one == nil {
		one = &group{
			Group: rollout.NewGroup(settings.Rules()), waiting: map[string]candidate{},
			shown: Group{Name: settings.Group, May: settings.MaxUnavailable},
		}
		switch {
		case settings.Group != "":
		case t.Change == rollout.Service:
			one.shown.Name = string(t.Change)
		default:
			url, _, _ := strings.Cut(t.Content, " ")
			one.shown.Name = string(t.Change) + " " + cmp.Or(rest.PlainURL(url), "with content that is not known yet")
		}
		if settings.MaxUnavailable > 0 && g.in.Settings.Limit.Coordination != throttle.CoordinationProcess {
			one.others = slices.Clone(g.in.Site.Away[settings.Group])
			g.awaitOthers(one)
		}
		g.byKey[key] = one
	}
	return one
}

// awaitOthers lets the members come back that other runs work on, when their operations have ended.
func (g *groups) awaitOthers(one *group) {
	for _, o := range one.others {
		if !o.Working {
			continue
		}
		back := func() {
			one.others = slices.DeleteFunc(one.others, func(a rollout.Absence) bool { return a.ID == o.ID })
		}
		if busy := g.slots.busy[o.ID]; busy != nil {
			if !busy.until.IsZero() {
				g.on(busy.until, back)
			}
			continue
		}
		if d, known := g.in.Times.Of(Deploy, ""); known {
			g.after(d, back)
		}
	}
}

// take lets a machine wait for its turn. It returns the group; nil if the machine needs no turn. follows: it has the turn of the deployment
// that it replaces.
func (g *groups) take(m *Target, name string, t *Turn, c candidate) (one *group, follows bool) {
	settings := g.settings(t)
	me := rollout.Member{ID: m.ID, Name: name, Change: t.Change, Failures: m.Failures, Queued: g.now, Away: t.Away}
	if t.Change == rollout.FirstDeployment {
		if one = g.followed(me, t); one != nil {
			return one, true
		}
	}
	if !settings.Concerns(t.Change) || t.Change == rollout.Replacement && t.Away && !settings.Concerns(rollout.FirstDeployment) {
		return nil, false
	}
	one = g.of(t)
	one.Join(me)
	c.since = g.now
	one.waiting[me.ID] = c
	one.shown.Members++
	return one, false
}

// followed returns the group in which a new deployment has the turn of the one that it replaces; nil if there is none.
func (g *groups) followed(me rollout.Member, t *Turn) *group {
	settings := g.settings(t)
	for _, content := range []string{t.Content, ""} {
		if one := g.byKey[settings.Key(rollout.Replacement, content)]; one != nil {
			if _, ok := one.Take(me, t.Node); ok {
				return one
			}
		}
	}
	key := settings.Key(rollout.Replacement, t.Content)
	g.created[key] = append(g.created[key], t.Node)
	return nil
}

// decide lets the machines begin whose turn it is, and refuses those that are not started. It reports whether there are any.
func (g *groups) decide() (some bool) {
	for _, key := range slices.Sorted(maps.Keys(g.byKey)) {
		one := g.byKey[key]
		if len(one.waiting) == 0 {
			continue
		}
		d := one.Decide(g.now, one.others)
		for _, id := range slices.Sorted(maps.Keys(d.Refuse)) {
			c, why := one.waiting[id], d.Refuse[id]
			delete(one.waiting, id)
			if why.Reason == rollout.NoPlace {
				one.Yield(id, g.now)
			}
			one.Leave(id)
			some = true
			c.refuse(g.now.Sub(c.since), reasonText(why))
		}
		for _, id := range d.Start {
			c := one.waiting[id]
			delete(one.waiting, id)
			one.Start(id)
			some = true
			c.begin(g.now.Sub(c.since))
		}
		if !some && !d.Again.IsZero() && !d.Again.Equal(one.again) {
			one.again = d.Again
			g.on(d.Again, func() {})
		}
	}
	return some
}

func reasonText(why rollout.Refusal) string {
	switch why.Reason {
	case rollout.TooManyFailures:
		return "too many have failed: " + Few(why.Names)
	case rollout.CanaryFailed:
		return "the canary has failed: " + Few(why.Names)
	case rollout.TooManyAway:
		return "the group lacks " + Few(why.Names) + " already"
	case rollout.NoPlace:
		return "-parallelism is lower than the number of members that wait"
	}
	return ""
}

func (g *groups) end(one *group, s *Step, failed bool) {
	switch {
	case failed:
		one.End(s.Machine.ID, rollout.Failed, g.now)
	case s.Removes && !g.isSucceeded(s.Turn):
		one.Hand(s.Machine.ID, s.Turn.Node, g.now)
	default:
		one.End(s.Machine.ID, rollout.Ready, g.now)
	}
}

// isSucceeded reports whether the deployment that replaces one was made before.
func (g *groups) isSucceeded(t *Turn) bool {
	key := g.settings(t).Key(rollout.Replacement, t.Content)
	i := slices.Index(g.created[key], t.Node)
	if i < 0 || t.Node == "" {
		return false
	}
	g.created[key] = slices.Delete(g.created[key], i, i+1)
	return true
}

// count remembers how many members were away at most.
func (g *groups) count() {
	for _, one := range g.byKey {
		one.shown.Most = max(one.shown.Most, one.Away(g.now, one.others))
	}
}

// others names the members that other runs work on.
func (g *groups) others() (names []string) {
	for _, key := range slices.Sorted(maps.Keys(g.byKey)) {
		for _, o := range g.byKey[key].others {
			names = append(names, cmp.Or(o.Name, o.ID))
		}
	}
	return names
}

func (g *groups) all() (all []Group) {
	for _, key := range slices.Sorted(maps.Keys(g.byKey)) {
		all = append(all, g.byKey[key].shown)
	}
	return all
}
