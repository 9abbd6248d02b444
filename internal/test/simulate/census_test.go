package simulate_test

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// census counts what random lives have met: verbs that runs have sent, and states in which nodes were when a plan began.
type census struct {
	mu    sync.Mutex
	met   map[string]int
	flags []*flag.Flag    // of the seeds
	ended map[string]bool // the flags whose lives have ended
}

// randomLives is the census of all random lives.
var randomLives = census{met: map[string]int{}, ended: map[string]bool{}}

const statePrefix = "state "

// seedsFlag is a flag with the seeds of random lives.
func seedsFlag(name, standard, usage string) *flag.Flag {
	flag.String(name, standard, usage+": first-last")
	randomLives.flags = append(randomLives.flags, flag.Lookup(name))
	return flag.Lookup(name)
}

// seedsOf are the seeds of a flag. When all lives of all flags have ended, it checks the census.
func seedsOf(t *testing.T, of *flag.Flag) iter.Seq[uint64] {
	t.Helper()
	var first, last uint64
	if _, err := fmt.Sscanf(of.Value.String(), "%d-%d", &first, &last); err != nil {
		t.Fatalf("%s %q: %v", of.Name, of.Value, err)
	}
	t.Cleanup(func() { randomLives.end(t, of) })
	return func(yield func(uint64) bool) {
		for seed := first; seed <= last && yield(seed); seed++ {
		}
	}
}

// randomSite is a site that the census counts.
func randomSite(seed uint64) *site {
	s := newSite(seed)
	s.census = &randomLives
	return s
}

// add counts something.
func (c *census) add(what string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met[what]++
}

// see counts the states of nodes.
func (c *census) see(nodes []fakeironic.Node) {
	for _, n := range nodes {
		c.add(statePrefix + n.ProvisionState)
	}
}

// end ends the lives of a flag. The last one checks what all have met, if each flag has the seeds that it has without being set.
func (c *census) end(t *testing.T, of *flag.Flag) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[of.Name] = of.Value.String() == of.DefValue
	all := !slices.ContainsFunc(c.flags, func(f *flag.Flag) bool { return !c.ended[f.Name] })
	table := ""
	for what := range floors {
		c.met[what] += 0
	}
	for _, what := range slices.Sorted(maps.Keys(c.met)) {
		floor, is := floors[what]
		table += fmt.Sprintf("%6d, at least %4d: %s\n", c.met[what], floor, what)
		switch {
		case !is && !isPower(strings.TrimPrefix(what, verbPrefix)):
			t.Errorf("random lives have met %q, and no floor says how often they should", what)
		case all && c.met[what] < floor:
			t.Errorf("random lives have met %q %d times, and the floor is %d", what, c.met[what], floor)
		}
	}
	t.Logf("random lives have met, so far:\n%s", table)
}

// floors are how often random lives meet a verb or a state at least.
var floors = map[string]int{
	verbPrefix + "abort":            1,
	verbPrefix + "active":           60,
	verbPrefix + "adopt":            2,
	verbPrefix + "clean":            8,
	verbPrefix + "deleted":          40,
	verbPrefix + "inspect":          2,
	verbPrefix + "manage":           80,
	verbPrefix + "provide":          80,
	verbPrefix + "rebuild":          20,
	verbPrefix + "rescue":           3,
	verbPrefix + "service":          5,
	verbPrefix + "unhold":           1,
	verbPrefix + "unrescue":         2,
	statePrefix + "active":          300,
	statePrefix + "adopt failed":    1,
	statePrefix + "adopting":        1,
	statePrefix + "available":       500,
	statePrefix + "clean failed":    1,
	statePrefix + "clean hold":      1,
	statePrefix + "clean wait":      1,
	statePrefix + "cleaning":        1,
	statePrefix + "deleting":        1,
	statePrefix + "deploy failed":   1,
	statePrefix + "deploy hold":     1,
	statePrefix + "deploying":       1,
	statePrefix + "enroll":          1,
	statePrefix + "error":           1,
	statePrefix + "inspect failed":  1,
	statePrefix + "inspect wait":    1,
	statePrefix + "inspecting":      1,
	statePrefix + "manageable":      30,
	statePrefix + "rescue":          1,
	statePrefix + "rescue failed":   1,
	statePrefix + "rescue wait":     1,
	statePrefix + "rescuing":        1,
	statePrefix + "service failed":  1,
	statePrefix + "service hold":    1,
	statePrefix + "service wait":    1,
	statePrefix + "servicing":       1,
	statePrefix + "unrescue failed": 1,
	statePrefix + "unrescuing":      1,
	statePrefix + "verifying":       1,
	statePrefix + "wait call-back":  1,
}
