package simulate_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

var tales = seedsFlag("tales", "1-35", "which tales TestSimulate_tales tells")

// TestSimulate_tales lets features meet that random lives rarely combine. A seed that fails prints its story.
func TestSimulate_tales(t *testing.T) {
	t.Parallel()
	all := themes()
	for seed := range seedsOf(t, tales) {
		of := all[seed%uint64(len(all))]
		t.Run(fmt.Sprintf("%d %s", seed, of.name), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { of.tell(t, seed) })
		})
	}
}

// theme says what a tale is about.
type theme struct {
	name  string
	begin func(l *tale) // makes the first configuration
	moves []move
	halts bool // the user presses Ctrl-C often
}

// move changes what the user wants or what there is. It returns what it has done; "" if it is not possible now.
type move func(l *tale) string

func themes() []theme {
	return []theme{bmcTheme(), bootTheme(), importTheme(), groupTheme(), reserveTheme(), listTheme(), haltTheme()}
}

// tale is a life in which the user changes a configuration by moves.
type tale struct {
	*life
	t         *testing.T
	config    configuration
	names     int
	newest    string
	recorded  any  // the hostname in a config drive that was recorded, and not deployed
	surprised bool // another client has changed something since the last apply
}

// next returns a new name.
func (l *tale) next(prefix string) string {
	l.names++
	return fmt.Sprintf("%s%d", prefix, l.names)
}

// chapters are how often the user applies a change at most.
const chapters = 5

func (of theme) tell(t *testing.T, seed uint64) {
	t.Helper()
	l := &tale{life: &life{site: randomSite(seed)}, t: t, config: configuration{}}
	l.secrets = []string{secret, userSecret}
	l.latency = 20 * time.Millisecond
	l.fake.StepTime = []time.Duration{time.Second, 7 * time.Second, 30 * time.Second}[l.below(3)]
	if l.newest = []string{"1.82", "1.91", "", "", ""}[l.below(5)]; l.newest != "" {
		l.fake.MaxMicroversion = l.newest
	}
	l.limit = 1 + l.below(3)
	l.space = l.workspace("w", object{"provisioning_limit": object{"max_concurrent": l.limit}})
	defer l.check(t, fmt.Sprintf("seed %d, %s", seed, of.name))
	l.tell("a site with steps of %s, limit %d, API %s", l.fake.StepTime, l.limit, l.newest)
	of.begin(l)
	if len(l.faults) > 0 {
		return
	}
	for range 2 + l.below(chapters) {
		of.chapter(l)
		if len(l.faults) > 0 {
			return
		}
	}
	l.fake.Fail = nil
	l.unprotect()
	l.settle(t, l.config)
	l.settle(t, configuration{})
}

// settle is life.settle after the operator has freed machines that nothing knows any more.
func (l *tale) settle(t *testing.T, config configuration) {
	t.Helper()
	l.freeMachines(config)
	l.life.settle(t, config)
}

// unprotect ends the protection of all machines.
func (l *tale) unprotect() {
	for _, address := range l.deployments() {
		l.config[address]["protected"] = false
	}
}

// apply applies the configuration, which must succeed and be done.
func (l *tale) apply() {
	l.mustApply(l.t, l.config, "the apply")
	l.mustBeDone(l.t, l.config)
	l.checkWish()
}

// chapter is a change that the user applies, while something may happen.
func (of theme) chapter(l *tale) {
	before := l.config.clone()
	for moves := 1 + l.below(2); moves > 0; {
		if said := of.moves[l.below(len(of.moves))](l); said != "" {
			l.tell("%s", said)
			moves--
		}
	}
	d := l.chapterTrouble()
	if l.below(8) == 0 {
		l.tell("%s", operateByOther(l))
	}
	if of.halts && l.below(3) > 0 {
		d = trouble{stop: time.Duration(1 + l.below(int(6*l.fake.StepTime)))}
	}
	end := l.run(l.t, l.config, d)
	l.fake.Fail = nil
	l.tidy()
	if drive, _ := l.config["metal_deployment.a"]["config_drive"].(object); drive != nil &&
		end.plan.warns("Imported deployment is recorded only") {
		l.recorded = drive["hostname"] // Ironic does not tell what an imported machine has
	}
	switch {
	case end.plan.failed && d.calm():
		l.refuse(before)
		return
	case !d.calm() || end.killed || d.stop > 0:
		<-time.After(time.Minute) // until what was late has arrived
		l.repair(l.t)
		// the change may have been impossible
		if made := l.space.replan(l.t, l.config); made.failed || made.warns("Too few nodes match now") {
			l.refuse(before)
			return
		}
		l.settle(l.t, l.config)
	case end.failed && end.plan.warns("Too few nodes match now"):
		l.refuse(before)
		return
	case end.failed && !l.surprised:
		l.broken("the apply has failed, though nothing disturbed it")
		return
	case end.failed:
		l.freeMachines(l.config)
	default:
		l.checkPromises(end.plan)
		l.checkCounts(end.plan)
	}
	if l.released.Swap(false) || l.surprised { // what others have done, a plan may see only after an apply
		l.surprised = false
		l.settle(l.t, l.config)
	}
	l.mustBeDone(l.t, l.config)
	l.checkWish()
}

// warns reports whether a plan has a warning.
func (p *plan) warns(summary string) bool {
	for _, c := range p.changes {
		if slices.ContainsFunc(c.warnings, func(text string) bool { return strings.HasPrefix(text, summary) }) {
			return true
		}
	}
	return false
}

// refuse gives up a change that a plan has refused. What was configured before must still be possible.
func (l *tale) refuse(before configuration) {
	l.tell("the user gives the change up")
	l.config = before
	l.settle(l.t, l.config)
	l.checkWish()
}

// clone copies a configuration.
func (c configuration) clone() configuration {
	all := configuration{}
	for address, settings := range c {
		all[address] = cloned(settings).(object)
	}
	return all
}

func cloned(of any) any {
	switch of := of.(type) {
	case object:
		all := object{}
		for key, value := range of {
			all[key] = cloned(value)
		}
		return all
	case []any:
		all := slices.Clone(of)
		for i := range all {
			all[i] = cloned(all[i])
		}
		return all
	}
	return of
}

// chapterTrouble chooses what happens during an apply: nothing in half of the chapters.
func (l *tale) chapterTrouble() (d trouble) {
	switch l.below(12) {
	case 0:
		d.kill, d.after, d.lost = 1+l.below(30), l.below(2) == 0, l.below(3) == 0
	case 1:
		d.stop = time.Duration(1 + l.below(int(6*l.fake.StepTime)))
	case 2, 3:
		d.answers = true
	case 4, 5:
		d.work = true
		left := 1
		l.fake.Fail = func(n fakeironic.Node, verb string) string {
			if left == 0 || l.below(2) > 0 {
				return ""
			}
			left--
			l.tell("Ironic fails to execute %s on %s in state %s", verb, n.Name, n.ProvisionState)
			return "The BMC does not answer."
		}
	}
	return d
}

// loseAnswer chooses the fault of a request that changes something.
func (s *site) loseAnswer(r *http.Request) *fault {
	all := lostAnswers()
	if r.Method == http.MethodGet || s.below(6) > 0 {
		return nil
	}
	return all[s.below(len(all))]
}

// checkCounts checks that a machine was moved no more often than the plan of an apply without trouble has counted.
func (l *tale) checkCounts(made *plan) {
	moved := map[string]int{}
	for _, v := range l.verbsOf() {
		if v.target == "active" || v.target == "rebuild" || strings.Contains(v.target, "reboot") || v.target == "rescue" {
			moved[v.node]++
		}
	}
	for _, address := range slices.Sorted(maps.Keys(made.changes)) {
		c, now := made.changes[address], l.space.state()[address]
		if kindName(address) != "metal_deployment" || now == nil || c.action == create || c.action == replace {
			continue
		}
		counted := 0
		for _, counter := range []string{"rebuilds", "restarts"} {
			counted += number(now, counter) - number(c.refreshed, counter)
		}
		if node := now.value.GetAttr("id").AsString(); moved[node] > counted {
			l.broken("%s was deployed or restarted %d times, and the counters say %d: %v", address, moved[node], counted, l.verbsOf())
		}
	}
}

// number returns a counter of a resource.
func number(i *instance, name string) int {
	value := i.value.GetAttr(name)
	if value.IsNull() {
		return 0
	}
	n, _ := value.AsBigFloat().Int64()
	return int(n)
}

// pause lets some steps of Ironic pass.
func (l *tale) pause(steps int) { <-time.After(time.Duration(steps) * l.fake.StepTime) }
