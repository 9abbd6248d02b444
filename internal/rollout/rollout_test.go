package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

// start is the time at which the stories begin.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func members(change rollout.Change, n int) (all []rollout.Member) {
	for i := range n {
		id := fmt.Sprintf("m%02d", i)
		all = append(all, rollout.Member{ID: id, Name: id, Change: change, Queued: start.Add(time.Duration(i) * time.Millisecond)})
	}
	return all
}

func group(rules rollout.Rules, all ...rollout.Member) *rollout.Group {
	g := rollout.NewGroup(rules)
	for _, m := range all {
		g.Join(m)
	}
	return g
}

// begin starts what may start, and returns it.
func begin(g *rollout.Group, now time.Time, others ...rollout.Absence) []string {
	d := g.Decide(now, others)
	for _, id := range d.Start {
		g.Start(id)
	}
	return d.Start
}

// refusals returns how many members are not started, by reason.
func refusals(g *rollout.Group, now time.Time, others ...rollout.Absence) map[rollout.Reason]int {
	n := map[rollout.Reason]int{}
	for _, r := range g.Decide(now, others).Refuse {
		n[r.Reason]++
	}
	return n
}

func set(n int) *int { return &n }

func TestDecide_badImageTouchesThreeMachines(t *testing.T) {
	t.Parallel()
	g := group(rollout.Settings{}.Rules(), members(rollout.Rebuild, 40)...)
	first := begin(g, start.Add(time.Second))
	if len(first) != 3 {
		t.Fatalf("%d machines start before the image has worked once", len(first))
	}
	for i, id := range first {
		g.End(id, rollout.Failed, start.Add(time.Hour))
		if more := begin(g, start.Add(time.Hour)); len(more) > 0 {
			t.Errorf("after %d failures, %v start", i+1, more)
		}
	}
	d := g.Decide(start.Add(time.Hour), nil)
	if len(d.Refuse) != 37 {
		t.Errorf("%d machines are told that they are not started", len(d.Refuse))
	}
	if r := d.Refuse["m20"]; r.Reason != rollout.TooManyFailures || !slices.Equal(r.Names, first) {
		t.Errorf("the reason is %+v", r)
	}
}

func TestDecide_oneSuccessLetsTheRestStart(t *testing.T) {
	t.Parallel()
	g := group(rollout.Settings{}.Rules(), members(rollout.Restart, 40)...)
	first := begin(g, start)
	g.End(first[1], rollout.Ready, start)
	if more := begin(g, start); len(more) != 37 {
		t.Errorf("after the first success %d start", len(more))
	}
	for _, id := range []string{"m00", "m02", "m03"} {
		g.End(id, rollout.Failed, start)
	}
	g.Join(rollout.Member{ID: "late", Change: rollout.Restart, Queued: start})
	if n := refusals(g, start); n[rollout.TooManyFailures] != 1 {
		t.Errorf("after three failures since the last success: %v", n)
	}
}

func TestDecide_canariesGoFirst(t *testing.T) {
	t.Parallel()
	rules := rollout.Settings{Canary: set(2), Pause: time.Minute}.Rules()
	g := group(rules, members(rollout.Rebuild, 40)...)
	if early := begin(g, start.Add(time.Second)); len(early) > 0 {
		t.Errorf("%v start before a check may have come", early)
	}
	first := begin(g, start.Add(3*time.Second))
	if len(first) != 2 {
		t.Fatalf("%d canaries", len(first))
	}
	g.End(first[0], rollout.Ready, start.Add(10*time.Minute))
	if more := begin(g, start.Add(10*time.Minute)); len(more) > 0 {
		t.Errorf("%v start beside a canary", more)
	}
	g.End(first[1], rollout.Ready, start.Add(11*time.Minute))
	d := g.Decide(start.Add(11*time.Minute), nil)
	if len(d.Start) > 0 || !d.Again.Equal(start.Add(12*time.Minute)) {
		t.Errorf("in the pause after the canaries: %+v", d)
	}
	if more := begin(g, d.Again); len(more) != 38 {
		t.Errorf("after the canaries %d start", len(more))
	}
}

func TestDecide_canaryThatFailsStopsTheRollout(t *testing.T) {
	t.Parallel()
	ready := start.Add(3 * time.Second)
	g := group(rollout.Settings{Canary: set(1)}.Rules(), members(rollout.Rebuild, 5)...)
	g.End(begin(g, ready)[0], rollout.Failed, ready)
	d := g.Decide(ready, nil)
	if len(d.Start) > 0 || len(d.Refuse) != 4 || d.Refuse["m03"].Reason != rollout.CanaryFailed {
		t.Errorf("%+v", d)
	}
}

func TestDecide_canaryThatWasNotTouchedIsReplaced(t *testing.T) {
	t.Parallel()
	ready := start.Add(3 * time.Second)
	g := group(rollout.Settings{Canary: set(1)}.Rules(), members(rollout.Rebuild, 5)...)
	g.End(begin(g, ready)[0], rollout.Untouched, ready)
	if next := begin(g, ready); !slices.Equal(next, []string{"m01"}) {
		t.Errorf("%v start", next)
	}
}

func TestDecide_machineThatFailedBeforeGoesLast(t *testing.T) {
	t.Parallel()
	all := members(rollout.Rebuild, 3)
	all[0].Failures = 1
	g := group(rollout.Settings{Canary: set(1)}.Rules(), all[0])
	if first := begin(g, start.Add(2*time.Second)); len(first) > 0 {
		t.Errorf("it does not wait for others: %v", first)
	}
	g.Join(all[1])
	if first := begin(g, start.Add(3*time.Second)); !slices.Equal(first, []string{"m01"}) {
		t.Errorf("%v goes first", first)
	}
}

func TestDecide_oneAwayAtATime(t *testing.T) {
	t.Parallel()
	rules := rollout.Settings{Group: "db", MaxUnavailable: 1, Pause: time.Minute}.Rules()
	g := group(rules, members(rollout.Restart, 3)...)
	if first := begin(g, start, rollout.Absence{ID: "other", Working: true}); len(first) > 0 {
		t.Fatalf("%v start while another run has a member away", first)
	}
	if first := begin(g, start); !slices.Equal(first, []string{"m00"}) {
		t.Fatalf("%v start", first)
	}
	g.End("m00", rollout.Ready, start.Add(time.Hour))
	if next := begin(g, start.Add(time.Hour+59*time.Second)); len(next) > 0 {
		t.Errorf("%v start in the pause", next)
	}
	if next := begin(g, start.Add(time.Hour+time.Minute)); !slices.Equal(next, []string{"m01"}) {
		t.Errorf("%v start after the pause", next)
	}
	g.End("m01", rollout.Failed, start.Add(2*time.Hour))
	if n := refusals(g, start.Add(2*time.Hour)); n[rollout.TooManyAway] != 1 {
		t.Errorf("beside a member that has failed: %v", n)
	}
}

func TestDecide_failedMemberIsRepairedFirst(t *testing.T) {
	t.Parallel()
	g := group(rollout.Settings{Group: "db", MaxUnavailable: 1}.Rules(), members(rollout.Rebuild, 2)...)
	failed := rollout.Absence{ID: "m05", Name: "m05", Failed: true}
	if d := g.Decide(start.Add(time.Second), []rollout.Absence{failed}); len(d.Start)+len(d.Refuse) > 0 {
		t.Fatalf("members do not wait for the one that has failed, which may still come: %+v", d)
	}
	g.Join(rollout.Member{ID: "m05", Change: rollout.Rebuild, Failures: 1, Queued: start.Add(time.Second)})
	if first := begin(g, start.Add(2*time.Second), failed); !slices.Equal(first, []string{"m05"}) {
		t.Fatalf("%v start", first)
	}
	g.End("m05", rollout.Ready, start.Add(time.Hour))
	if next := begin(g, start.Add(time.Hour), failed); !slices.Equal(next, []string{"m00"}) {
		t.Errorf("after the repair %v start", next)
	}
}

func TestDecide_firstDeploymentsWaitForNothingUnlessAsked(t *testing.T) {
	t.Parallel()
	if (rollout.Settings{}).Concerns(rollout.FirstDeployment) {
		t.Error("first deployments take turns without being asked to")
	}
	g := group(rollout.Settings{Group: "db", MaxUnavailable: 1}.Rules(), members(rollout.FirstDeployment, 40)...)
	if first := begin(g, start); len(first) != 40 {
		t.Errorf("%d of 40 start", len(first))
	}
	asked := group(rollout.Settings{MaxFailures: set(2)}.Rules(), members(rollout.FirstDeployment, 40)...)
	if first := begin(asked, start); len(first) != 2 {
		t.Errorf("with max_failures = 2, %d start", len(first))
	}
}

func TestDecide_newDeploymentTakesTheTurnOfTheFormerOne(t *testing.T) {
	t.Parallel()
	all := members(rollout.Replacement, 4)
	g := group(rollout.Settings{Group: "db", MaxUnavailable: 1}.Rules(), all...)
	begin(g, start)
	g.Hand("m00", "", start.Add(time.Minute))
	if d := g.Decide(start.Add(time.Minute), nil); len(d.Start)+len(d.Refuse) > 0 {
		t.Errorf("right after the undeployment: %+v", d)
	}
	now := start.Add(time.Minute + 10*time.Second)
	d := g.Decide(now, nil)
	if len(d.Refuse) != 1 || d.Refuse["m03"].Reason != rollout.NoPlace {
		t.Fatalf("no member gives up its place: %+v", d)
	}
	g.Yield("m03", now)
	if again := g.Decide(now, nil); len(again.Refuse) > 0 {
		t.Errorf("all give up at once: %+v", again)
	}
	if was, ok := g.Take(rollout.Member{ID: "elsewhere", Name: "elsewhere"}, "n"); !ok || was != "m00" {
		t.Fatalf("the new deployment takes the turn of %q", was)
	}
	if d := g.Decide(now.Add(time.Hour), nil); len(d.Start)+len(d.Refuse) > 0 {
		t.Errorf("while the new deployment is at work: %+v", d)
	}
	g.End("elsewhere", rollout.Ready, now)
	if next := begin(g, now); !slices.Equal(next, []string{"m01"}) {
		t.Errorf("%v start", next)
	}
}

// A host and a deployment share a machine. The change of the host does not end the turn of the deployment that is to be made anew.
func TestDecide_hostOfAMemberThatIsUndeployed(t *testing.T) {
	t.Parallel()
	g := group(rollout.Settings{Group: "db", MaxUnavailable: 1}.Rules(), members(rollout.Replacement, 1)...)
	begin(g, start)
	g.Hand("m00", "m00", start)
	g.Join(rollout.Member{ID: "m00", Name: "m00", Change: rollout.Service, Queued: start})
	g.Join(rollout.Member{ID: "m01", Name: "m01", Change: rollout.Service, Queued: start})
	d := g.Decide(start, nil)
	if len(d.Start) > 0 || len(d.Refuse) != 1 || d.Refuse["m00"].Reason != rollout.NoPlace {
		t.Errorf("while m00 is undeployed: %+v", d)
	}
	g.Leave("m00")
	g.End("m00", rollout.Untouched, start)
	if n := g.Away(start, nil); n != 1 {
		t.Errorf("%d are away", n)
	}
	g.Join(rollout.Member{ID: "m00", Name: "m00", Change: rollout.FirstDeployment, Queued: start})
	if next := begin(g, start); !slices.Equal(next, []string{"m00"}) || g.Away(start, nil) != 1 {
		t.Errorf("another deployment on its node: %v start, %d are away", next, g.Away(start, nil))
	}
	if was, ok := g.Take(rollout.Member{ID: "m00"}, "m00"); !ok || was != "m00" {
		t.Errorf("the new deployment takes the turn of %q", was)
	}
}

func TestTake_knowsTheNodeOfTheNewDeployment(t *testing.T) {
	t.Parallel()
	g := group(rollout.Rules{}, members(rollout.Replacement, 3)...)
	begin(g, start)
	g.Hand("m00", "a", start)
	g.Hand("m01", "b", start)
	g.Hand("m02", "", start)
	for _, tt := range []struct{ node, was string }{{"b", "m01"}, {"c", "m02"}, {"c", ""}, {"a", "m00"}} {
		if was, _ := g.Take(rollout.Member{ID: "on " + tt.node}, tt.node); was != tt.was {
			t.Errorf("a new deployment on %s takes the turn of %q, not %q", tt.node, was, tt.was)
		}
	}
}

func TestDecide_checksWaitForNothing(t *testing.T) {
	t.Parallel()
	g := group(rollout.Settings{Canary: set(1)}.Rules(), members(rollout.Rebuild, 3)...)
	g.End(begin(g, start.Add(3*time.Second))[0], rollout.Failed, start)
	g.Join(rollout.Member{ID: "c", Change: rollout.Check})
	if first := begin(g, start); !slices.Equal(first, []string{"c"}) {
		t.Errorf("%v start", first)
	}
}

// In the next run, the check of a canary that was not ready stands for the canary.
func TestDecide_checkOfACanaryDecides(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[rollout.Outcome]struct{ starts, refused int }{rollout.Ready: {3, 0}, rollout.Failed: {0, 3}} {
		g := group(rollout.Settings{Canary: set(1)}.Rules(), members(rollout.Rebuild, 3)...)
		if first := begin(g, start.Add(time.Second)); len(first) > 0 {
			t.Errorf("%v start before the check may have come", first)
		}
		g.Join(rollout.Member{ID: "c", Name: "c", Change: rollout.Check, Queued: start.Add(time.Second)})
		for _, at := range []time.Duration{time.Second, time.Minute} {
			if next := begin(g, start.Add(at)); at == time.Second && !slices.Equal(next, []string{"c"}) || at > time.Second &&
				len(next) > 0 {
				t.Errorf("after %s %v start, before the canary is ready", at, next)
			}
		}
		g.End("c", outcome, start.Add(time.Minute))
		if d := g.Decide(start.Add(time.Minute), nil); len(d.Start) != want.starts || len(d.Refuse) != want.refused {
			t.Errorf("outcome %d: %+v", outcome, d)
		}
	}
}

// A machine that bears new firmware tells nothing of a new image: each kind of change has canaries and a first success of its own. A
// failure stops both.
func TestDecide_servicesAreATrialOfTheirOwn(t *testing.T) {
	t.Parallel()
	later := start.Add(3 * time.Second)
	for name, tt := range map[string]struct {
		settings rollout.Settings
		first    int
	}{
		"canaries": {rollout.Settings{Group: "g", Canary: set(1)}, 1},
		"failures": {rollout.Settings{Group: "g", MaxFailures: set(2)}, 2},
	} {
		g := group(tt.settings.Rules(), members(rollout.Service, 6)...)
		serviced := begin(g, later)
		if len(serviced) != tt.first {
			t.Fatalf("%s: %v are serviced first", name, serviced)
		}
		for _, id := range serviced {
			g.End(id, rollout.Ready, later)
		}
		if rest := begin(g, later); len(rest) != 6-tt.first {
			t.Errorf("%s: then %v", name, rest)
		}
		for _, m := range members(rollout.Rebuild, 6) {
			m.ID, m.Name = "r"+m.ID, "r"+m.ID
			g.Join(m)
		}
		rebuilt := begin(g, later)
		if len(rebuilt) != tt.first {
			t.Errorf("%s: after the services, %v are rebuilt first", name, rebuilt)
		}
		g.Join(rollout.Member{ID: "late", Change: rollout.Service, Queued: start})
		for _, id := range rebuilt {
			g.End(id, rollout.Failed, later)
		}
		if d := g.Decide(later, nil); len(d.Start) > 0 || len(d.Refuse) != 7-tt.first {
			t.Errorf("%s: after the failures %+v", name, d)
		}
	}
}

// The deployment of a machine whose host was serviced changes in the pause that follows: the machine is away anyway.
func TestDecide_deploymentFollowsItsHostInThePause(t *testing.T) {
	t.Parallel()
	g := group(rollout.Rules{MaxUnavailable: 1, Pause: time.Minute}, members(rollout.Service, 2)...)
	if first := begin(g, start); !slices.Equal(first, []string{"m00"}) || !g.Has("m00") || !g.Has("m01") {
		t.Fatalf("%v begin", first)
	}
	g.End("m00", rollout.Ready, start)
	if g.Has("m00") {
		t.Error("a turn that has ended goes on")
	}
	g.Join(rollout.Member{ID: "m00", Name: "m00", Change: rollout.Rebuild, Queued: start.Add(time.Second)})
	if next := begin(g, start.Add(2*time.Second)); !slices.Equal(next, []string{"m00"}) {
		t.Errorf("%v begin in the pause", next)
	}
	g.End("m00", rollout.Ready, start.Add(10*time.Minute))
	if next := begin(g, start.Add(10*time.Minute)); len(next) > 0 {
		t.Errorf("%v begin in the pause of the deployment", next)
	}
	if next := begin(g, start.Add(11*time.Minute)); !slices.Equal(next, []string{"m01"}) {
		t.Errorf("%v begin after it", next)
	}
}

// A member that has failed stays away if its repair does nothing.
func TestDecide_failureOutlivesARepairThatDoesNothing(t *testing.T) {
	t.Parallel()
	g := group(rollout.Rules{MaxUnavailable: 1}, members(rollout.Service, 2)...)
	g.End(begin(g, start)[0], rollout.Failed, start)
	g.Join(rollout.Member{ID: "m00", Name: "m00", Change: rollout.Rebuild, Queued: start})
	if repair := begin(g, start); !slices.Equal(repair, []string{"m00"}) {
		t.Fatalf("%v begin", repair)
	}
	g.End("m00", rollout.Untouched, start)
	if next := begin(g, start.Add(time.Second)); len(next) > 0 {
		t.Errorf("%v begin beside it", next)
	}
}

func TestSettings_keys(t *testing.T) {
	t.Parallel()
	plain, canary := rollout.Settings{}, rollout.Settings{Canary: set(1)}
	for _, tt := range []struct {
		name string
		a, b string
		same bool
	}{
		{"the same image", plain.Key(rollout.Rebuild, "v2"), plain.Key(rollout.Rebuild, "v2"), true},
		{"another image", plain.Key(rollout.Rebuild, "v2"), plain.Key(rollout.Rebuild, "v3"), false},
		{"another change", plain.Key(rollout.Rebuild, "v2"), plain.Key(rollout.Restart, "v2"), false},
		{"another canary", plain.Key(rollout.Rebuild, "v2"), canary.Key(rollout.Rebuild, "v2"), false},
		{"the same BIOS settings", plain.Key(rollout.Service, "a"), plain.Key(rollout.Service, "a"), true},
		{"other BIOS settings", plain.Key(rollout.Service, "a"), plain.Key(rollout.Service, "b"), false},
		{
			"a host and a deployment of a group", rollout.Settings{Group: "db"}.Key(rollout.Service, "a"),
			rollout.Settings{Group: "db"}.Key(rollout.Rebuild, "v2"), true,
		},
		{"a check after a rebuild", plain.Key(rollout.Rebuild, "v2"), plain.Key(rollout.Check, "v2"), true},
		{"a group", rollout.Settings{Group: "db"}.Key(rollout.Rebuild, "v2"), rollout.Settings{Group: "db"}.Key(rollout.Restart, ""), true},
	} {
		if (tt.a == tt.b) != tt.same {
			t.Errorf("%s: %q, %q", tt.name, tt.a, tt.b)
		}
	}
	if got := (rollout.Settings{MaxFailures: set(0)}).Or(rollout.Settings{Canary: set(2), MaxFailures: set(9)}).Rules(); got.Canary != 2 ||
		got.MaxFailures != 0 {
		t.Errorf("%+v", got)
	}
}

// life is a random rollout.
type life struct {
	t      *testing.T
	r      *rand.Rand
	g      *rollout.Group
	rules  rollout.Rules
	now    time.Time
	coming []rollout.Member
	others []rollout.Absence

	working       map[string]rollout.Member
	gone          []string // undeployed, the new deployment has not begun
	canary        map[string]bool
	failed, rests map[string]time.Time
	trials        map[bool]*trial // of services, and of other changes
	broken        bool
	done          int
}

type trial struct {
	failures, good, canaries int
	rested                   time.Time
}

func (l *life) trial(m rollout.Member) *trial { return l.trials[m.Change == rollout.Service] }

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	l := &life{
		t: t, r: r, now: start, working: map[string]rollout.Member{}, canary: map[string]bool{}, failed: map[string]time.Time{},
		rests: map[string]time.Time{}, trials: map[bool]*trial{true: {}, false: {}},
	}
	l.rules = rollout.Rules{
		MaxUnavailable: r.IntN(4), Pause: time.Duration(r.IntN(3)) * time.Minute, Canary: r.IntN(3),
		MaxFailures: r.IntN(4), First: r.IntN(2) == 0,
	}
	l.g = rollout.NewGroup(l.rules)
	for i := range 1 + r.IntN(12) {
		id := fmt.Sprintf("m%02d", i)
		change := []rollout.Change{
			rollout.FirstDeployment, rollout.Replacement, rollout.Rebuild, rollout.Restart, rollout.Check,
			rollout.Service,
		}[r.IntN(6)]
		l.coming = append(l.coming, rollout.Member{
			ID: id, Name: id, Change: change, Failures: r.IntN(2) * r.IntN(9),
			Away: change == rollout.Check,
		})
	}
	for i := range r.IntN(3) {
		l.others = append(l.others, rollout.Absence{ID: fmt.Sprintf("o%d", i), Working: r.IntN(2) == 0, Failed: r.IntN(2) == 0})
	}
	return l
}

func (l *life) counts(m rollout.Member) bool {
	return l.rules.MaxFailures > 0 && (m.Change != rollout.FirstDeployment || l.rules.First)
}

// unavailable returns how many members are away, without the given one.
func (l *life) unavailable(but string) int {
	away := map[string]bool{}
	for id, m := range l.working {
		away[id] = m.Change != rollout.FirstDeployment
	}
	for id := range l.failed {
		away[id] = true
	}
	for id, until := range l.rests {
		if l.now.Before(until) {
			away[id] = true
		}
	}
	for _, o := range l.others {
		if o.Working || o.Failed {
			away[o.ID] = true
		}
	}
	delete(away, but)
	n := 0
	for _, is := range away {
		if is {
			n++
		}
	}
	return n
}

// start checks that a member may start, and starts it.
func (l *life) start(m rollout.Member) {
	of := l.trial(m)
	busy := 0
	inCanaries, tried := of.canaries < l.rules.Canary, of.canaries
	for id, w := range l.working {
		if l.counts(w) && l.trial(w) == of {
			busy++
		}
		if l.canary[id] && l.trial(w) == of {
			tried++
		}
	}
	most := max(l.trials[true].failures, l.trials[false].failures)
	if m.Change != rollout.Check {
		if l.broken {
			l.t.Errorf("%s starts after a canary has failed", m.ID)
		}
		if inCanaries && tried >= l.rules.Canary || !inCanaries && l.now.Before(of.rested) {
			l.t.Errorf("%s starts before the canaries are ready", m.ID)
		}
		if l.counts(m) && (most >= l.rules.MaxFailures || of.good == 0 && busy+of.failures >= l.rules.MaxFailures) {
			l.t.Errorf("%s starts after %d failures, with %d at work", m.ID, most, busy)
		}
		if l.rules.MaxUnavailable > 0 && m.Change != rollout.FirstDeployment && l.unavailable(m.ID) >= l.rules.MaxUnavailable {
			l.t.Errorf("%s starts with %d away", m.ID, l.unavailable(m.ID))
		}
	}
	l.canary[m.ID] = inCanaries
	l.working[m.ID] = m
	l.g.Start(m.ID)
}

// end ends the turn of a member at random.
func (l *life) end(id string) {
	m := l.working[id]
	if m.Change == rollout.Replacement && !slices.Contains(l.gone, id) && l.r.IntN(2) == 0 {
		l.g.Hand(id, []string{"", "new-" + id}[l.r.IntN(2)], l.now)
		l.gone = append(l.gone, id)
		return
	}
	how := []rollout.Outcome{rollout.Ready, rollout.Ready, rollout.Failed, rollout.Untouched}[l.r.IntN(4)]
	delete(l.working, id)
	l.done++
	l.g.End(id, how, l.now)
	switch how {
	case rollout.Ready:
		of := l.trial(m)
		of.good++
		of.failures = 0
		l.rests[id] = l.now.Add(l.rules.Pause)
		if l.canary[id] {
			of.canaries++
			of.rested = l.now.Add(l.rules.Pause)
		}
	case rollout.Failed:
		if m.Change != rollout.FirstDeployment {
			l.failed[id] = l.now
		}
		l.broken = l.broken || l.canary[id]
		if l.counts(m) {
			l.trial(m).failures++
		}
	case rollout.Untouched:
	}
}

func TestDecide_properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20000) {
		l := newLife(t, seed)
		l.run()
		if t.Failed() {
			t.Fatalf("seed %d, rules %+v", seed, l.rules)
		}
	}
}

// run lives the rollout to its end. Terraform runs four operations at once.
func (l *life) run() {
	const parallelism = 4
	waiting, total := map[string]rollout.Member{}, len(l.coming)
	for steps := 0; l.done < total; steps++ {
		if steps > 2000 {
			l.t.Fatalf("it does not end: %d of %d done, %d at work, %d undeployed, %d waiting", l.done, total, len(l.working),
				len(l.gone), len(waiting))
		}
		for len(waiting)+len(l.working)-len(l.gone) < parallelism && len(l.coming) > 0 {
			m := l.coming[0]
			l.coming, m.Queued = l.coming[1:], l.now
			waiting[m.ID] = m
			l.g.Join(m)
		}
		if len(l.gone) > 0 && len(waiting)+len(l.working)-len(l.gone) < parallelism {
			l.take()
		}
		d := l.g.Decide(l.now, l.others)
		for _, id := range d.Start {
			l.start(waiting[id])
			delete(waiting, id)
		}
		for _, id := range slices.Sorted(maps.Keys(d.Refuse)) {
			if d.Refuse[id].Reason == rollout.NoPlace {
				l.g.Yield(id, l.now)
			}
			l.g.Leave(id)
			delete(waiting, id)
			l.done++
		}
		busy := slices.Sorted(maps.Keys(l.working))
		busy = slices.DeleteFunc(busy, func(id string) bool { return slices.Contains(l.gone, id) })
		switch {
		case len(busy) > 0 && (d.Again.IsZero() || l.r.IntN(2) == 0):
			l.now = l.now.Add(time.Minute)
			l.end(busy[l.r.IntN(len(busy))])
		case !d.Again.IsZero():
			l.now = d.Again
		case slices.ContainsFunc(l.others, func(o rollout.Absence) bool { return o.Working }):
			for i := range l.others {
				l.others[i].Working = false
			}
		case len(waiting) > 0 && len(d.Start)+len(d.Refuse) == 0 && len(l.gone) == 0:
			l.t.Fatalf("%d wait for nothing", len(waiting))
		}
	}
}

// take begins the new deployment of the member that was undeployed first.
func (l *life) take() {
	was, ok := l.g.Take(rollout.Member{ID: "new-" + l.gone[0], Name: "new"}, "new-"+l.gone[0])
	if !ok || !slices.Contains(l.gone, was) {
		l.t.Fatalf("the new deployment takes the turn of %q", was)
	}
	m := l.working[was]
	m.ID = "new-" + l.gone[0]
	l.gone = slices.DeleteFunc(l.gone, func(id string) bool { return id == was })
	delete(l.working, was)
	l.canary[m.ID] = l.canary[was]
	l.working[m.ID] = m
}

// A member in its pause runs, and so does one that another run has begun to work on: to start it takes it away.
func TestDecide_membersInTheirPauseAreTakenAwayOneByOne(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Second)
	for name, of := range map[string]rollout.Absence{
		"in its pause":         {Until: now.Add(time.Minute)},
		"begun by another run": {Working: true},
	} {
		var all []rollout.Absence
		for _, m := range members(rollout.Rebuild, 2) {
			of.ID, of.Name = m.ID, m.Name
			all = append(all, of)
		}
		if began := begin(group(rollout.Rules{MaxUnavailable: 1}, members(rollout.Rebuild, 2)...), now, all...); len(began) > 0 {
			t.Errorf("%s: %v begin at once, beside another one", name, began)
		}
		if began := begin(group(rollout.Rules{MaxUnavailable: 1}, members(rollout.Rebuild, 2)...), now, all[0]); len(began) != 1 ||
			began[0] != all[0].ID {
			t.Errorf("%s: %v begin, want only the one that is away", name, began)
		}
	}
}
