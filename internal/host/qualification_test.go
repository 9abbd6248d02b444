package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func burnIn(names ...string) decide.Value[host.Qualification] {
	q := host.Qualification{ValidFor: time.Hour, Quarantines: true}
	for _, name := range names {
		q.Steps = append(q.Steps, ironic.CleanStep{Interface: "deploy", Step: name})
	}
	return decide.Known(q)
}

func details(p host.Plan) (all string) {
	for _, n := range p.Notices {
		all += n.Detail + "\n"
	}
	return all
}

// A machine is qualified on its way into the pool, and leaves the pool for that only if it is its turn. One that is in use never is.
func TestDecide_qualification(t *testing.T) {
	t.Parallel()
	never, holds := &host.Fitness{Why: "it has never been qualified"}, &host.Fitness{Holds: true}
	due := &host.Fitness{Due: true, Why: "it has lapsed"}
	for _, test := range []struct {
		wish, seen string
		fitness    *host.Fitness
		qualifies  bool
		says       string
	}{
		{"target_state=available", "", never, true, "planned because it has never been qualified"},
		{"target_state=available", "", nil, true, "boots for that"},
		{"target_state=available", "", holds, false, ""},
		{"target_state=manageable", "", never, false, ""},
		{"target_state=available retired", "", never, false, ""},
		{"target_state=available", "state=available", never, false, ""},
		{"target_state=available", "state=available", nil, false, ""},
		{"target_state=available", "state=available", due, true, "It leaves the pool for that time"},
		{"target_state=available", "state=available reserved", due, false, ""},
		{"target_state=available", "state=active reserved", due, false, ""},
		{"target_state=available replaced=machine:2", "replaced=machine:1 state=available", holds, true, "boots for that"},
	} {
		w, s := tell(t, test.wish, test.seen)
		w.Qualification, s.Fitness = burnIn("burnin_cpu"), test.fitness
		p := host.Decide(w, s)
		step, qualifies := p.Find(host.DoQualify)
		if qualifies != test.qualifies || qualifies && (!p.Has(host.DoWalk) || step.Cost != decide.Clean) ||
			!strings.Contains(details(p), test.says) {
			t.Errorf("%+v:\n%s", test, describe(w, s, p))
		}
		if counted := p.Forecast.Cleanings == decide.Known(s.Cleanings+1); counted != test.qualifies && !p.Has(host.DoWalk) {
			t.Errorf("%+v: cleanings %+v", test, p.Forecast.Cleanings)
		}
	}
}

// A new machine is qualified before it enters the pool, also if Ironic does not clean it, and steps that erase are called so.
func TestDecide_qualificationOfNew(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		wish, says string
		steps      []string
		cleanings  int64
	}{
		{"target_state=available", "boots for that.", []string{"burnin_cpu"}, 1},
		{"target_state=available automated_clean=false", "may erase its disks", []string{"burnin_cpu", "burnin_disk"}, 1},
		{"target_state=manageable", "", []string{"burnin_disk"}, 0},
	} {
		w, _ := tell(t, test.wish, "")
		w.Qualification = burnIn(test.steps...)
		p := host.Decide(w, host.Seen{New: true})
		if p.Has(host.DoQualify) != (test.cleanings > 0) || p.Forecast.Cleanings != decide.Known(test.cleanings) ||
			!strings.Contains(details(p), test.says) {
			t.Errorf("%+v:\n%s", test, describe(w, host.Seen{New: true}, p))
		}
	}
}

// Ironic's agent burns in all disks: a plan refuses that where the host keeps some.
func TestDecide_qualificationKeepsDisks(t *testing.T) {
	t.Parallel()
	for step, refused := range map[string]bool{"burnin_disk": true, "burnin_cpu": false} {
		w, s := tell(t, "target_state=available", "state=available")
		w.Qualification, w.Skips = burnIn(step), decide.Known([]disks.Hint{{"serial": "D2"}})
		if p := host.Decide(w, s); strings.Contains(details(p), "keeps disks") != refused {
			t.Errorf("%s:\n%s", step, describe(w, s, p))
		}
	}
}

// A runbook that Ironic would not run on the machine, or that writes to disks that are to be kept, is refused by the plan that would run it.
func TestDecide_qualificationByRunbook(t *testing.T) {
	t.Parallel()
	of := func(step, trait string) *host.Runbook {
		return &host.Runbook{
			HasTraits: true, Traits: decide.Known([]string{"CUSTOM_BURN"}),
			Found: &ironic.Procedure{Name: "burn-in", Traits: []string{trait}, Steps: []ironic.Step{{Interface: "deploy", Step: step}}},
		}
	}
	for name, test := range map[string]struct {
		wish    string
		runbook *host.Runbook
		says    string
	}{
		"not asked":       {"target_state=available", nil, ""},
		"missing":         {"target_state=available", &host.Runbook{}, "Ironic has no runbook burn-in"},
		"of this plan":    {"target_state=available", &host.Runbook{Open: true}, ""},
		"hidden":          {"target_state=available", &host.Runbook{Hidden: "no right"}, ""},
		"of other traits": {"target_state=available", of("burnin_cpu", "CUSTOM_OTHER"), "only on nodes with one of its traits (CUSTOM_OTHER)"},
		"all disks":       {"target_state=available", of("burnin_disk", "CUSTOM_BURN"), "keeps disks"},
		"fits":            {"target_state=available", of("burnin_cpu", "CUSTOM_BURN"), ""},
		"rules may add":   {"target_state=available inspect=true", of("burnin_cpu", "CUSTOM_OTHER"), ""},
		"does not run":    {"target_state=manageable", &host.Runbook{}, ""},
	} {
		w, s := tell(t, test.wish, "state=manageable")
		q := burnIn()
		q.V.Runbook = "burn-in"
		w.Qualification, w.Skips, s.Qualifying = q, decide.Known([]disks.Hint{{"serial": "D2"}}), test.runbook
		s.Inspected = !w.Inspect.V
		p := host.Decide(w, s)
		if refused := decide.Refused(p.Notices); refused != (test.says != "") || !strings.Contains(details(p), test.says) {
			t.Errorf("%s: refused: %t\n%s", name, refused, describe(w, s, p))
		}
		if asks := slices.Contains(p.Asks, host.AskQualifying); asks != strings.HasPrefix(test.wish, "target_state=available") {
			t.Errorf("%s: asks: %t", name, asks)
		}
	}
}

// A machine has passed for as long as it is the same one, and for the configured time.
func TestQualification_holds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	before, since := now.Add(-3*time.Hour), now.Add(-time.Minute)
	passed := notes.Qualification{Passed: now.Add(-30 * time.Minute), Inspected: before, Serial: "S1"}
	of := func(serial string) *ironic.Inventory {
		i := &ironic.Inventory{}
		i.System.Serial = serial
		return i
	}
	for name, test := range map[string]struct {
		note         *notes.Qualification
		inspected    *time.Time
		inventory    *ironic.Inventory
		holds, known bool
	}{
		"never":                    {nil, nil, nil, false, true},
		"failed":                   {&notes.Qualification{Failed: since}, nil, nil, false, true},
		"begun":                    {&notes.Qualification{Begun: since}, nil, nil, false, true},
		"lapsed":                   {&notes.Qualification{Passed: before}, nil, nil, false, true},
		"of a time to come":        {&notes.Qualification{Passed: now.Add(time.Hour)}, nil, nil, false, true},
		"never inspected":          {&notes.Qualification{Passed: since}, nil, nil, true, true},
		"same inspection":          {&passed, &before, nil, true, true},
		"failed inspection since":  {&passed, nil, nil, false, true},
		"inspected since":          {&passed, &since, nil, false, false},
		"the same machine":         {&passed, &since, of("S1"), true, true},
		"another machine":          {&passed, &since, of("S2"), false, true},
		"an inventory without one": {&passed, &since, of(""), false, true},
	} {
		node := &ironic.Node{}
		node.InspectionFinishedAt = test.inspected
		if holds, known := test.note.Holds(node, test.inventory, time.Hour, now); holds != test.holds || known != test.known {
			t.Errorf("%s: holds %t, known %t", name, holds, known)
		}
	}
}

// Of the machines of the pool, a run takes at most a quarter out of there to qualify them again, and as many as a quarter of its limit,
// less those at which another run is at work; but one, if there is none.
func TestSeeFitness_leavesThePoolItsMachines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ idle, busy, limit, want int }{
		{12, 0, 0, 3}, {12, 0, 100, 3}, {12, 0, 4, 1}, {12, 0, 2, 1}, {1, 0, 0, 1}, {10, 2, 0, 1}, {9, 3, 0, 0}, {3, 1, 0, 0},
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{}
			fake.AddFleet(test.idle+test.busy, "baremetal")
			for i := range test.busy {
				name := fmt.Sprintf("node-%03d", i)
				fake.Set(name, "provision_state", "clean wait")
				fake.Set(name, "extra", map[string]any{notes.KeyQualification: map[string]any{"begun": "2000-01-01T00:00:00Z"}})
			}
			site, due := sitetest.Run(fake, sitetest.UpTo(test.limit)), 0
			for range 2 { // a refresh looks twice
				due = 0
				for _, n := range fake.Nodes() {
					node, err := site.Ironic.Node(t.Context(), n.UUID)
					if err != nil {
						t.Fatal(err)
					}
					if host.SeeFitness(t.Context(), site.Site, node, burnIn("burnin_cpu"), nil).Due {
						due++
					}
				}
			}
			if due != test.want {
				t.Errorf("%+v: %d machines leave the pool", test, due)
			}
		})
	}
}
