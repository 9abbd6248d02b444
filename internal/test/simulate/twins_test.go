package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
)

// twins returns how many lives there are in which two configurations create the same.
func twins() uint64 {
	if *everything {
		return 40
	}
	return 16
}

// unsaved is longer than a finished creation counts as one that a killed run may not have saved.
const unsaved = 20 * time.Minute

// Two configurations create the same host, allocation and deployment at the same moment. Never do both own one of them, and neither
// deletes or taints what the other has.
func TestTwins_neverBothOwn(t *testing.T) {
	t.Parallel()
	for seed := range twins() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveAsTwins(t, seed) })
		})
	}
}

func liveAsTwins(t *testing.T, seed uint64) {
	t.Helper()
	s := newSite(seed)
	s.latency = time.Duration(s.below(500)) * time.Millisecond
	defer s.check(t, fmt.Sprintf("seed %d", seed))
	config := oneOfEach("v1")
	both := []*workspace{s.workspace("left", nil), s.workspace("right", nil)}
	together(func(w *workspace) {
		<-time.After(time.Duration(s.below(2000)) * time.Millisecond)
		w.apply(t, config, death{})
	}, both...)
	s.checkOwners(both)
	for _, w := range both { // the loser tries again, while the winner changes nothing
		<-time.After(unsaved)
		w.apply(t, config, death{})
		s.checkOwners(both)
	}
	winner := slices.IndexFunc(both, func(w *workspace) bool { return len(w.state()) == len(config) })
	if winner < 0 {
		s.broken("neither owns everything")
		return
	}
	if left := both[winner].replan(t, config); !left.empty() {
		s.broken("the plan of the winner is %s", left)
	}
	for _, w := range []*workspace{both[winner], both[1-winner]} { // the loser gets what the winner gives up
		if w.apply(t, config, death{}).failed {
			s.broken("%s cannot create what is free", w.name)
		}
		if w.apply(t, configuration{}, death{}).failed || len(w.state()) > 0 {
			s.broken("%s cannot destroy what it has", w.name)
		}
	}
	s.checkClean(t)
}

// together runs something for several workspaces at once.
func together(do func(*workspace), all ...*workspace) {
	var steps []*core.Step
	for _, w := range all {
		steps = append(steps, &core.Step{Name: w.name, Run: func() bool {
			do(w)
			return true
		}})
	}
	walk(steps)
}

// checkOwners checks that no two workspaces have the same in their states, that nothing is tainted, and that everything exists.
func (s *site) checkOwners(all []*workspace) {
	owners := map[string]string{}
	for _, w := range all {
		for _, address := range slices.Sorted(maps.Keys(w.state())) {
			id := kindName(address) + " " + w.text(address, "id")
			if other := owners[id]; other != "" {
				s.broken("%s and %s both own %s", other, w.name, id)
			}
			owners[id] = w.name
			if w.state()[address].tainted {
				s.broken("%s of %s is tainted", address, w.name)
			}
			if _, exists := s.fake.Node(w.text(address, "id")); !exists && kindName(address) == "metal_host" {
				s.broken("%s of %s does not exist", address, w.name)
			}
		}
	}
}
