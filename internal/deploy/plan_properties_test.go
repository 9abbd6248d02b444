package deploy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// rounds is the number of random wishes for each provision state.
const rounds = 500

// kinds are deployments, with the values that their settings have in random wishes. "?" and "-" are as in the tables.
var kinds = []struct {
	runs   string
	values map[string]string
}{
	{"image=a, config_drive=d", map[string]string{"image": "a b ?", "config_drive": "d e - ?", "traits": "- T ?", "instance_info": "- i"}},
	{"live_iso=a1", map[string]string{
		"url": "a1 a2 ?", "shared_content": "- s1 s2 ?", "host_content": "- h1 h2 ?", "contains": "- other ?", "installing": "- true ?",
		"registered":    "- false ?",
		"reboot_policy": "- always never ?", "config_drive": "- d ?",
	}},
	{"adopt, on_destroy=forget", map[string]string{"instance_info": "- i ?"}},
}

// common are values that the settings of all kinds have.
var common = map[string]string{
	"rebuild_triggers": "- 1 2 ?", "restart_triggers": "- 1 2 ?", "rescue": "- - 1 2", "vifs": "- p1 p1,p2", "power_state": "- - on off",
	"power_off_mode": "- hard soft graceful ?", "protected": "- - true false", "instance_name": "- - a b ?", "ready_check": "- - r1 r2 ?",
	"on_change": "- - ignore replace rebuild", "on_destroy": "- undeploy undeploy forget", "node": "uuid-1 uuid-1 n1 uuid-2 ?",
	"allocation": "- - reservation other ?",
}

// conditions are facts that random machines may have.
var conditions = []string{
	"protected", "not named", "off", "not ready", "importing", "imported", "import applied", "creation interrupted before Ironic began",
	"host replaced", "no BMC", "in maintenance", "no record of the boot",
}

// beginsOrEnds are what may become of a deployment besides a change.
var beginsOrEnds = []string{"", "", "", "", "new", "destroy"}

// story is a random wish, and what is seen.
type story struct {
	name   string
	values map[string]string // of the kind
	wish   string
	wished deploy.Wish
	seen   deploy.Seen
	pick   *rand.Rand
}

// changes reports whether the deployment exists and stays.
func (s story) changes() bool { return !s.seen.New && !s.wished.Destroy }

// settings returns random settings of a kind. most says how many change at most; known leaves out values that are not known.
func settings(pick *rand.Rand, values map[string]string, most int, known bool) string {
	all := maps.Clone(values)
	maps.Copy(all, common)
	names := slices.Sorted(maps.Keys(all))
	var chosen []string
	for _, i := range pick.Perm(len(names))[:pick.IntN(most+1)] {
		name := names[i]
		options := strings.Fields(all[name])
		if to := options[pick.IntN(len(options))]; to != "?" || !known {
			chosen = append(chosen, name+"="+strings.ReplaceAll(to, ",", " "))
		}
	}
	if len(chosen) == 0 {
		return "the same"
	}
	return strings.Join(chosen, ", ")
}

// stories calls f for random wishes and sights in every provision state.
func stories(t *testing.T, f func(story) error) {
	t.Helper()
	for n, state := range provisionStates {
		t.Run(strings.ReplaceAll(state, " ", "_"), func(t *testing.T) {
			t.Parallel()
			pick := rand.New(rand.NewPCG(uint64(n), 1))
			for range rounds {
				kind := kinds[pick.IntN(len(kinds))]
				runs := kind.runs + ", " + settings(pick, kind.values, 3, true)
				facts := state
				for range pick.IntN(3) {
					facts += ", " + conditions[pick.IntN(len(conditions))]
				}
				s := story{
					values: kind.values, wish: settings(pick, kind.values, 4, false),
					seen: seeing(runningMachine(runs), facts), pick: pick,
				}
				s.seen.Was.Node, s.seen.Was.Allocation = decide.Known("uuid-1"), deploy.Text{}
				if s.wished = changed(s.seen.Was, s.wish); !s.wished.Rescue.IsNull() && s.wished.Power.V == deploy.PowerOff {
					continue // ValidateConfig refuses that
				}
				end := beginsOrEnds[pick.IntN(len(beginsOrEnds))]
				if s.wished.Destroy = end == "destroy"; end == "new" {
					s.seen = deploy.Seen{New: true, Now: now}
				}
				s.name = fmt.Sprintf("state: %s; seen: %s; wished: %s; %s", runs, facts, s.wish, end)
				if err := f(s); err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
			}
		})
	}
}

// An unchanged wish asks nothing of a machine whose deployment has ended.
func TestDecide_unchangedWishHasNoStep(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		if !s.changes() {
			return nil
		}
		if s.seen.Was.Power.Set {
			s.seen.Power = s.seen.Was.Power
		}
		if s.seen.Was.Protected.Set {
			s.seen.Protected = s.seen.Was.Protected.V
		}
		if s.seen.Was.Name.Set {
			s.seen.Name = s.seen.Was.Name
		}
		if s.seen.Was.ReadyCheck.Set {
			s.seen.Ready = decide.Known(true)
		} else {
			s.seen.Ready = decide.Value[bool]{}
		}
		forgetReady(&s.seen)
		if !states.Finished(s.seen.State) || s.seen.Was.Adopt && states.Adoptable(s.seen.State) {
			return nil
		}
		return unchanged(deploy.Decide(s.seen.Was, s.seen), s.seen)
	})
}

// unchanged returns an error if a plan of an unchanged wish does anything.
func unchanged(p deploy.Plan, s deploy.Seen) error {
	if len(p.Steps)+len(p.Replaces) > 0 || p.Refused() || counters(p) != fmt.Sprintf("%d/%d", s.Rebuilds, s.Restarts) {
		return fmt.Errorf("the plan of the unchanged wish is %s | %s | %s", steps(p), notices(p), counters(p))
	}
	recorded := !s.Was.LiveISO.Set || s.Sight.Boot.Booted != nil // otherwise boot_status takes the ISO as booted
	if recorded && len(p.Notices) == 0 && !p.Empty(s) {
		return fmt.Errorf("the plan of the unchanged wish changes values of the state: %+v", p.Forecast)
	}
	return nil
}

// A change from one value to another of what restarts a machine never refuses the plan: one machine would hold up all others of the apply.
func TestDecide_liveISOChangeIsNotRefused(t *testing.T) {
	t.Parallel()
	const runs = "live_iso=a1, shared_content=s1, host_content=h1, rebuild_triggers=1, restart_triggers=1, config_drive=d"
	for _, state := range provisionStates {
		for _, condition := range []string{"off", "no BMC", "in maintenance", "no record of the boot"} {
			for _, wish := range []string{
				"rebuild_triggers=2", "restart_triggers=2", "config_drive=e", "live_iso=a2, host_content=h2",
				"live_iso=a2, host_content=h2, rebuild_triggers=2, restart_triggers=2",
			} {
				s := seeing(runningMachine(runs), state+", "+condition)
				if p := deploy.Decide(changed(s.Was, wish), s); p.Refused() {
					t.Errorf("state %s, %s, wished %s: %s", state, condition, wish, notices(p))
				}
			}
		}
	}
}

// says has a summary for each kind of step that wipes or restarts a machine which runs, besides one by power_state.
var says = map[deploy.Kind][]string{
	deploy.DoRebuild:     {"Rebuild wipes the root disk"},
	deploy.DoRepeat:      {"Failed deployment is repeated", "Undeployed node is deployed again", "Unfinished deployment is continued"},
	deploy.DoBoot:        {"Machine is restarted with a new live ISO", "Live ISO is not known yet"},
	deploy.DoRestart:     {"Machine is restarted"},
	deploy.DoUnrescue:    {"Machine leaves rescue mode"},
	deploy.DoEnterRescue: {"Machine enters rescue mode"},
}

// Each step that wipes or restarts a machine raises its counter and has its notice, and the reverse.
func TestDecide_countsAndAnnouncesWhatItDoes(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		p := deploy.Decide(s.wished, s.seen)
		if p.Refused() || len(p.Replaces) > 0 {
			return nil
		}
		raised := map[decide.Cost]string{decide.Wipe: "0", decide.Restart: "0"}
		for _, step := range p.Steps {
			summaries, counts := says[step.Do]
			if !counts {
				continue
			}
			switch {
			case !step.Maybe:
				raised[step.Cost] = "1"
			case raised[step.Cost] == "0":
				raised[step.Cost] = "?"
			}
			if !slices.ContainsFunc(p.Notices, func(n decide.Notice) bool { return slices.Contains(summaries, n.Summary) }) {
				return fmt.Errorf("%s has no notice: %s", step.Do, notices(p))
			}
		}
		if want := raised[decide.Wipe] + "/" + raised[decide.Restart]; counters(p) != want {
			return fmt.Errorf("%s shows the counters %s, want %s", steps(p), counters(p), want)
		}
		for kind, summaries := range says {
			announced := slices.ContainsFunc(p.Notices, func(n decide.Notice) bool { return slices.Contains(summaries[:1], n.Summary) })
			done := deploy.Has(p.Steps, kind) || kind == deploy.DoRestart && deploy.Has(p.Steps, deploy.DoUnrescue)
			if announced && !done {
				return fmt.Errorf("%s is announced and not done: %s", kind, steps(p))
			}
		}
		return nil
	})
}

// harm returns the highest cost of what a plan does for certain; that of a replacement is a wipe.
func harm(p deploy.Plan) (most decide.Cost) {
	if len(p.Replaces) > 0 {
		return decide.Wipe
	}
	for _, step := range p.Steps {
		if !step.Maybe {
			most = max(most, step.Cost)
		}
	}
	return most
}

// What is not known yet is not changed: of two plans that differ only in what is known, the one that knows less never does more to the
// machine for certain. What it may do has an unknown counter.
func TestDecide_knowingLessNeverWipesMore(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		if s.seen.New || s.wished.Destroy || s.seen.LosesNode || !strings.Contains(s.wish, "?") {
			return nil
		}
		known := slices.DeleteFunc(strings.Split(s.wish, ", "), func(set string) bool { return strings.HasSuffix(set, "=?") })
		more := "the same"
		if len(known) > 0 {
			more = strings.Join(known, ", ")
		}
		less, all := deploy.Decide(s.wished, s.seen), deploy.Decide(changed(s.seen.Was, more), s.seen)
		if !all.Refused() && harm(less) > harm(all) {
			return fmt.Errorf("with less known, the plan does %s, and else %s", steps(less), steps(all))
		}
		return nil
	})
}

// A plan in which more is known wipes and restarts nothing that the plan before did not announce. If it replaces the deployment, Terraform
// refuses it: the action is another one.
func TestDecide_knowingMoreNeverAddsAWipe(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		w := s.wished
		before := deploy.Decide(w, s.seen)
		if before.Refused() || len(before.Replaces) > 0 {
			return nil
		}
		for _, values := range []map[string]string{s.values, common} {
			for _, name := range slices.Sorted(maps.Keys(values)) {
				w = learned(s, w, name, values[name])
			}
		}
		after := deploy.Decide(w, s.seen)
		for _, cost := range []decide.Cost{decide.Wipe, decide.Restart} {
			costs := func(p deploy.Plan) bool {
				return slices.ContainsFunc(p.Steps, func(step deploy.Step) bool { return step.Cost >= cost })
			}
			if !after.Refused() && len(after.Replaces) == 0 && costs(after) && !costs(before) {
				return fmt.Errorf("with more known (%s), the plan does %s, and before %s", w.Node.V, steps(after), steps(before))
			}
		}
		return nil
	})
}

// learned returns a wish in which a setting is known that was not.
func learned(s story, w deploy.Wish, name, options string) deploy.Wish {
	if !strings.Contains(s.wish, name+"=?") || w.Destroy {
		return w
	}
	known := strings.Fields(strings.ReplaceAll(options, "?", ""))
	return changed(w, name+"="+known[s.pick.IntN(len(known))])
}

// After an apply, the same wish asks nothing of the machine.
func TestDecide_afterAnApplyNothingIsLeft(t *testing.T) {
	t.Parallel()
	stories(t, func(s story) error {
		w := s.wished
		p := deploy.Decide(w, s.seen)
		if strings.Contains(s.wish, "?") || p.Refused() || len(p.Replaces) > 0 || w.Destroy {
			return nil
		}
		if s.seen.Past.Phase == deploy.Importing && (!states.Finished(s.seen.State) ||
			slices.ContainsFunc(p.Notices, func(n decide.Notice) bool { return n.Summary == "Power is not switched yet" })) {
			return nil // the next plan shows what the import has left
		}
		if s.seen.Was.LiveISO.Set && deploy.Has(p.Steps, deploy.DoContinue) {
			return nil // what it boots is for the next plan to judge
		}
		if s.seen.Was.Adopt && !states.Finished(s.seen.State) && !p.Operates() {
			return nil // there is nothing to deploy on it
		}
		after := applied(w, s.seen, p)
		if err := unchanged(deploy.Decide(w, after), after); err != nil {
			return fmt.Errorf("after %s (%s), %w", steps(p), notices(p), err)
		}
		return nil
	})
}

// applied returns what is seen after an apply and a refresh.
func applied(w deploy.Wish, s deploy.Seen, p deploy.Plan) deploy.Seen {
	kept := p.Forecast.Wish
	fill(&kept)
	if s.New {
		s = deploy.Seen{
			ID: w.Node.V, Label: "n1", Now: now,
			Sight: deploy.Sight{Name: "n1", Boot: bootiso.Candidate{Label: "n1", Powered: true}},
		}
	}
	s.Was, s.Rebuilds, s.Restarts = kept, p.Forecast.Rebuilds.V, p.Forecast.Restarts.V
	for _, step := range p.Steps {
		if step.Operates() {
			s.State, s.Unbegun = "active", false
			s.Sight.Content, s.Runs.Mark = kept.Deployment.Digest(), kept.Deployment.Digest()
		}
		if step.Operates() || step.Cost == decide.Restart {
			s.Power = decide.Known(deploy.PowerOn)
		}
		switch step.Do { //nolint:exhaustive // the others change nothing here
		case deploy.DoUnrescue:
			s.State = "active"
		case deploy.DoEnterRescue:
			s.State = "rescue"
		case deploy.DoPowerOff:
			s.Power = decide.Known(deploy.PowerOff)
		case deploy.DoPowerOn:
			s.Power = decide.Known(deploy.PowerOn)
		case deploy.DoProtect, deploy.DoUnprotect:
			s.Protected = step.Do == deploy.DoProtect
		case deploy.DoDeploy, deploy.DoRepeat, deploy.DoRebuild, deploy.DoName:
			if w.Name.Set {
				s.Name = w.Name
			}
		}
	}
	if s.Ready = p.Forecast.Ready; deploy.Has(p.Steps, deploy.DoCheck) {
		s.Ready = decide.Known(true)
	}
	forgetReady(&s)
	s.Past = s.Past.AfterApply(kept, s.Sight.Content == kept.Deployment.Digest()).AfterRead(&ironic.Node{}, false)
	s.Sight.Boot.Rescued = deploy.RescueOf(s.State) != deploy.NotRescued
	if w.LiveISO.Set {
		bootedAs(w, &s, p)
	}
	return s
}

// bootedAs records on the node what an apply has booted, or wants.
func bootedAs(w deploy.Wish, s *deploy.Seen, p deploy.Plan) {
	want, m := w.LiveISO.V.Want, &s.Sight.Boot
	unrecorded := m.Booted == nil && s.State == "active" && m.Barred == ""
	switch boots, asks := deploy.Has(p.Steps, deploy.DoBoot, deploy.DoRepeat, deploy.DoDeploy), deploy.Has(p.Steps, deploy.DoAsk); {
	case boots || asks || unrecorded:
		record := bootiso.NewRecord(want.Artifacts, now, nil)
		m.Booted, m.Wanted, m.Asked = &record, nil, asks
	case m.Booted != nil:
		m.Wanted = bootiso.NextWanted(want.Artifacts, *m.Booted, m.Wanted)
	}
	s.Last = deploy.Wanted{Image: "i", Artifacts: want.WithoutURL()}
	m.Protected = s.Protected
	s.Boot = decide.Known(bootiso.Decide(bootiso.Input{Machine: *m, Want: want, Now: now}).Now)
}
