package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

var seeds = seedsFlag("seeds", "1-30", "which lives TestSimulate_lives lives")

// TestSimulate_lives lives whole lives of random sites. A seed that fails prints its story.
func TestSimulate_lives(t *testing.T) {
	t.Parallel()
	for seed := range seedsOf(t, seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { begin(seed).live(t, seed) })
		})
	}
}

// life is a site, a user and a workspace.
type life struct {
	*site
	wish   *wish
	space  *workspace
	faulty bool // requests have met faults
}

func (l *life) live(t *testing.T, seed uint64) {
	t.Helper()
	defer l.check(t, fmt.Sprintf("seed %d", seed))
	for range 1 + l.below(3) {
		l.year(t)
		if len(l.faults) > 0 {
			return
		}
	}
	l.settle(t, l.wish.configuration())
	l.settle(t, configuration{})
	if l.hasLock(t) && (l.space.killed || l.faulty) { // a run may end while its requests to release the lock meet faults
		l.lockOnceMore(t, l.later())
	}
	l.checkEmpty(t)
}

// later is a configuration that needs all locks that the life may have left: that of the limit, and that of its rollout group.
func (l *life) later() configuration {
	later := laterHost()
	if l.wish.order != nil {
		later["metal_deployment.later"] = object{
			"node_id": reference{"metal_host.later", "id"}, "rollout": cloned(l.wish.order),
			"image": imageAt("http://images.test/later"),
		}
	}
	return later
}

// begin makes a site.
func begin(seed uint64) *life {
	l := &life{site: randomSite(seed)}
	l.secrets = []string{secret, userSecret}
	l.latency = []time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second}[l.below(3)]
	l.fake.StepTime = []time.Duration{time.Second, 7 * time.Second, time.Minute}[l.below(3)]
	if l.below(3) == 0 {
		l.fake.MaxMicroversion = "1.82"
	}
	if l.below(2) == 0 {
		l.fake.IgnoresSoftOff = func(n fakeironic.Node) bool { return n.UUID[0] < '8' }
	}
	l.limit = 1 + l.below(3)
	l.fake.AddFleet(mostUses+1, fleetClass)
	l.wish = &wish{site: l.site}
	block := object{"provisioning_limit": object{"max_concurrent": l.limit}}
	l.space = l.workspace("w", block)
	l.wish.chooseOrder(block, l.space)
	l.space.logs = l.below(8) == 0
	l.tell("a site with latency %s, steps of %s, limit %d, API %s", l.latency, l.fake.StepTime, l.limit, l.fake.MaxMicroversion)
	return l
}

// year changes the wish and applies it, while something may happen.
func (l *life) year(t *testing.T) {
	t.Helper()
	for range 1 + l.below(3) {
		l.tell("the user wants: %s", l.wish.change())
	}
	d := l.trouble()
	l.forgetTurns(d)
	config := l.wish.configuration()
	end := l.run(t, config, d)
	switch {
	case !d.calm():
		l.repair(t)
		if end.killed {
			l.settle(t, config)
		}
		return
	case end.killed || d.stop > 0:
		l.mustApply(t, config, "the apply after the kill or the interruption")
	case end.refused:
		l.settle(t, config)
	case end.failed:
		l.broken("the apply has failed, though nothing disturbed it")
	default:
		l.checkPromises(end.plan)
	}
	l.mustBeDone(t, config)
	l.checkRestarted(end.plan)
}

// run applies a configuration while something happens.
func (l *life) run(t *testing.T, config configuration, d trouble) outcome {
	t.Helper()
	if d != (trouble{}) {
		l.tell("trouble: %+v", d)
	}
	l.forget()
	if d.faults {
		l.fault, l.faulty = l.faultOf, true
	}
	if d.answers {
		l.fault, l.faulty = l.loseAnswer, true
	}
	if d.lists {
		l.fault, l.faulty = l.faultOfList, true
	}
	defer l.brew(t, d, l.space)()
	ended := make(chan struct{})
	if d.others || d.restart {
		l.meddled = l.meddled || d.others
		go l.disturb(t, d, ended)
	}
	l.answers(!d.mute)
	end := l.space.applyIn(t, config, d)
	l.answers(true)
	if d.others || d.restart {
		ended <- struct{}{}
	}
	l.fault = nil
	l.checkWipes(end.plan)
	l.checkRebuilds(end.plan)
	if end.killed && d.lost {
		l.space.lose(lastWrites)
		l.tell("the last states are lost")
	}
	return end
}

// disturb lets other clients and conductors disturb a run until it ends.
func (l *life) disturb(t *testing.T, d trouble, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(1 + l.below(int(4*l.fake.StepTime)))):
		}
		if d.restart {
			l.restartConductor()
		} else {
			l.meddle(t)
		}
	}
}

// mustApply applies a configuration, which must succeed.
func (l *life) mustApply(t *testing.T, config configuration, what string) {
	t.Helper()
	switch end := l.run(t, config, trouble{}); {
	case end.refused:
		l.settle(t, config)
	case end.failed:
		l.broken("%s has failed", what)
	}
}

// mustBeDone checks that the next plan is empty.
func (l *life) mustBeDone(t *testing.T, config configuration) {
	t.Helper()
	if left := l.space.replan(t, config); !left.empty() {
		l.broken("the next plan is %s", left)
	}
	l.checkReady(config, l.space.state())
}

// tries are how many applies a user needs at most when the trouble has ended: what failed is tainted or gone, for example.
const tries = 4

// settle applies a configuration until nothing is left to do.
func (l *life) settle(t *testing.T, config configuration) {
	t.Helper()
	for range tries {
		if !l.run(t, config, trouble{}).failed && l.space.replan(t, config).empty() {
			l.checkReady(config, l.space.state())
			return
		}
		l.repair(t)
	}
	l.broken("after %d applies without trouble the site is not as configured: the plan is %s", tries, l.space.replan(t, config))
}

// checkEmpty checks that only the fleet is left after everything was destroyed.
func (l *life) checkEmpty(t *testing.T) {
	t.Helper()
	l.checkClean(t)
	if len(l.faults) > 0 {
		return
	}
	if len(l.space.state()) > 0 {
		l.broken("in state is %v", slices.Collect(maps.Keys(l.space.state())))
	}
	_, answer := l.call(t, "GET", "allocations", nil)
	if left, _ := answer["allocations"].([]any); len(left) > 0 {
		l.broken("allocations are left: %v", left)
	}
	for _, n := range l.fake.Nodes() {
		info, _ := n.Raw["instance_info"].(object)
		delete(info, "traits") // Ironic keeps those of a deleted allocation
		if l.meddled {
			delete(info, "terraform_metal") // written when another client had just undeployed the node
		}
		switch {
		case n.ResourceClass != fleetClass:
			l.broken("node %s is left", n.Name)
		case n.InstanceUUID != "" || len(info) > 0 || n.ProvisionState != "available":
			l.broken("node %s is left in state %s, reserved by %s, with %v", n.Name, n.ProvisionState, n.InstanceUUID, info)
		}
	}
}

// checkWipes checks that the plan of a run has shown what it did to machines.
func (l *life) checkWipes(made *plan) {
	if made == nil {
		return
	}
	for _, v := range l.verbsOf() {
		if v.target == "manage" || v.target == "abort" || made.shows(v, l.space.state()) {
			continue
		}
		if v.target == "active" && !l.isWritten(v.node) && made.updates(v.node) { // an interrupted creation goes on
			continue
		}
		l.broken("%s sent %s to %s, which the plan (%s) did not show", v.run, v.target, v.node, made)
	}
}

// checkRebuilds checks that no plan has counted another write to a disk to which nothing was ever written.
func (l *life) checkRebuilds(made *plan) {
	for address, c := range made.changes {
		if kindName(address) != "metal_deployment" || c.action != update || !c.planned.GetAttr("rebuilds").IsKnown() {
			continue
		}
		if c.raises("rebuilds") && !l.wasWritten(c.refreshed.value.GetAttr("id").AsString()) {
			l.broken("the plan raised rebuilds of %s, though nothing was ever written to its disk", address)
		}
	}
}

// checkPromises checks that a run that has succeeded did to machines what its plan has counted.
func (l *life) checkPromises(made *plan) {
	verbs := l.verbsOf()
	for address, c := range made.changes {
		if c.action != update || kindName(address) != "metal_deployment" {
			continue
		}
		node := c.refreshed.value.GetAttr("id").AsString()
		sent := func(wanted func(target string) bool) bool {
			return slices.ContainsFunc(verbs, func(v sent) bool { return v.node == node && wanted(v.target) })
		}
		if c.raises("rebuilds") && !sent(func(target string) bool { return target == "active" || target == "rebuild" }) {
			l.broken("the plan raised rebuilds of %s, but nothing was deployed", address)
		}
		if c.raises("restarts") && !c.raises("rebuilds") && !sent(moves) {
			l.broken("the plan raised restarts of %s, but the machine was not restarted", address)
		}
	}
}

// checkRestarted checks that the machines which a plan restarts are on, also if that apply was killed or stopped and another one followed.
func (l *life) checkRestarted(made *plan) {
	if made == nil {
		return
	}
	for address, c := range made.changes {
		if c.action != update || kindName(address) != "metal_deployment" || !c.raises("restarts") || c.raises("rebuilds") {
			continue
		}
		n, exists := l.fake.Node(c.refreshed.value.GetAttr("id").AsString())
		if off := cty.StringVal("off"); exists && n.PowerState == "power off" && !c.planned.GetAttr("power_state").RawEquals(off) {
			l.broken("the plan raised restarts of %s, and the machine is off", address)
		}
	}
}

// verbsOf returns the verbs since the last call of forget.
func (s *site) verbsOf() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.verbs)
}

// updates reports whether a plan changes the deployment on a node in place.
func (p *plan) updates(node string) bool {
	for address, c := range p.changes {
		if kindName(address) == "metal_deployment" && c.action == update && c.refreshed.value.GetAttr("id").AsString() == node {
			return true
		}
	}
	return false
}

// shows reports whether a plan shows that a verb is sent to a node. now is the state after the apply.
func (p *plan) shows(v sent, now states) bool {
	for address, c := range p.changes {
		concerns := c.action == create || c.action == replace // its node may have become known during the apply
		for _, i := range []*instance{c.refreshed, now[address]} {
			concerns = concerns || i != nil && i.node() == v.node
		}
		if concerns && c.shows(kindName(address), v) {
			return true
		}
	}
	return false
}

// node returns the UUID of the node that a resource is about; "" if none.
func (i *instance) node() string {
	id := i.value.GetAttr("id")
	if i.value.Type().HasAttribute("node_id") && i.value.Type().HasAttribute("on_unusable") { // an allocation
		id = i.value.GetAttr("node_id")
	}
	if id.IsNull() || !id.IsKnown() {
		return ""
	}
	return id.AsString()
}

// shows reports whether the planned change of a resource shows that a verb is sent to its node.
func (c *change) shows(kind string, v sent) bool {
	verb := v.target
	deploys := verb == "active" || verb == "rebuild" || verb == "deleted"
	switch {
	case kind == "metal_allocation" && c.action == remove && verb == "deleted" && v.state != "active": // it ends a quarantine
		return true
	case c.action == keep, c.action == forget, kind == "metal_allocation", kind == "metal_allocation_group":
		return false
	case kind == "metal_host" && deploys:
		return false
	case c.action != update:
		return true
	case kind == "metal_deployment" && deploys:
		return c.raises("rebuilds") || c.raises("restarts") && !c.planned.GetAttr("live_iso").IsNull()
	case isPower(verb):
		return c.changes("power_state") || kind == "metal_deployment" && (c.raises("restarts") || c.raises("rebuilds"))
	}
	if kind == "metal_host" && (c.changes("target_state") || verb == "provide" &&
		c.planned.GetAttr("automated_clean").RawEquals(cty.False)) {
		return true
	}
	return slices.ContainsFunc(c.warnings, func(text string) bool { return !strings.HasPrefix(text, "Node in maintenance") })
}

func isPower(verb string) bool {
	return strings.Contains(verb, "power") || strings.Contains(verb, "reboot")
}

// moves reports whether a verb restarts a machine, in whatever way.
func moves(verb string) bool {
	return isPower(verb) || slices.Contains([]string{"active", "rebuild", "rescue", "unrescue"}, verb)
}

// raises reports whether the plan raises a counter of a deployment, or may raise it.
func (c *change) raises(counter string) bool {
	before, after := c.refreshed.value.GetAttr(counter), c.planned.GetAttr(counter)
	return !after.IsKnown() || !before.IsNull() && before.LessThan(after).True()
}

// changes reports whether the plan changes an attribute, or may change it.
func (c *change) changes(attribute string) bool {
	before, after := c.refreshed.value.GetAttr(attribute), c.planned.GetAttr(attribute)
	return !after.IsKnown() || !before.RawEquals(after)
}
