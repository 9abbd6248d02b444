package simulate_test

import (
	"fmt"
	"testing"
	"time"
)

var rollouts = seedsFlag("rollouts", "1-5", "which rollouts TestSimulate_rollouts lives")

// TestSimulate_rollouts lets two users change machines of one rollout group at once. A seed that fails prints its story.
func TestSimulate_rollouts(t *testing.T) {
	t.Parallel()
	for seed := range seedsOf(t, rollouts) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveRollouts(t, seed, "") })
		})
	}
}

// user is one of those whose machines are in the group.
type user struct {
	*wish
	space *workspace
	end   outcome
}

// rollout is a site whose users change machines of one group.
type rollout struct {
	*life
	users  []*user
	placed bool     // the users choose the nodes, and not allocations
	spare  []string // UUIDs of nodes without a deployment
}

// mostMembers are the members that each user has at most.
const mostMembers = 3

// liveRollouts lives a life of a rollout group. only is the only kind of trouble; "": all but the weather.
func liveRollouts(t *testing.T, seed uint64, only string) {
	t.Helper()
	l := &rollout{life: &life{site: randomSite(seed)}}
	l.only = only
	l.secrets = []string{userSecret}
	l.latency = []time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second}[l.below(3)]
	l.fake.StepTime = []time.Duration{time.Second, 7 * time.Second, time.Minute}[l.below(3)]
	defer l.check(t, fmt.Sprintf("seed %d", seed))
	l.begin()
	l.settleAll(t)
	for range 2 + l.below(3) {
		if len(l.faults) > 0 {
			return
		}
		l.year(t)
	}
	for _, u := range l.users {
		u.uses, u.hosts = nil, nil
	}
	l.settleAll(t)
}

// begin makes the users and their machines.
func (l *rollout) begin() {
	l.fake.AddFleet(2*mostMembers+2, fleetClass)
	for _, n := range l.fake.Nodes() {
		l.spare = append(l.spare, n.UUID)
	}
	l.placed = l.below(2) == 0
	var spaces []*workspace
	for _, name := range []string{"left", "right"}[:1+l.below(2)] {
		u := &user{wish: &wish{site: l.site}, space: l.workspace(name, nil)}
		l.users, spaces = append(l.users, u), append(spaces, u.space)
	}
	first := l.users[0]
	first.chooseGroup(spaces...)
	for _, u := range l.users {
		u.order = first.order
		for range 2 + l.below(mostMembers-1) {
			l.addMember(u)
		}
	}
	l.space, l.wish = first.space, first.wish
	l.tell("a site with latency %s, steps of %s, rollout %v", l.latency, l.fake.StepTime, first.order)
}

// addMember adds a machine, on a node that the user chooses or by an allocation.
func (l *rollout) addMember(u *user) {
	m := &useWish{address: u.next(u.space.name), image: 1, replaced: l.below(3) == 0, drive: l.below(3) == 0}
	m.name = m.address
	switch {
	case l.placed:
		m.node, l.spare = l.spare[0], l.spare[1:]
	case l.below(4) > 0:
		m.host = &hostWish{address: u.next(u.space.name + "h"), secretVersion: 1, bios: 1}
		m.host.name = m.host.address
		u.hosts = append(u.hosts, m.host)
	}
	u.uses = append(u.uses, m)
}

// change changes what a user wants, and says how.
func (l *rollout) change(u *user) string {
	if len(u.uses) == 0 {
		l.addMember(u)
		return "add a member"
	}
	one := u.uses[l.below(len(u.uses))]
	switch l.below(13) {
	case 9, 10, 11, 12:
		for _, h := range u.hosts {
			h.bios++
		}
		if len(u.hosts) > 0 && l.below(2) == 0 {
			one.image++
			return "other BIOS settings for all, and another image for " + one.address
		}
		if len(u.hosts) > 0 {
			return "other BIOS settings for all"
		}
	case 0:
		one.image++
		return "another image for " + one.address
	case 1:
		one.restart++
		return "restart " + one.address
	case 2, 3:
		for _, m := range u.uses {
			m.restart++
		}
		return "restart all"
	case 4:
		one.replaced = !one.replaced
		return fmt.Sprintf("changes replace %s: %t", one.address, one.replaced)
	case 5:
		if one.node != "" {
			one.node, l.spare = l.spare[0], append(l.spare[1:], one.node)
			return "move " + one.address
		}
	case 6:
		if len(u.uses) < mostMembers {
			l.addMember(u)
			return "add a member"
		}
	}
	for _, m := range u.uses {
		m.image++
	}
	return "another image for all"
}

// year lets the users apply changes at once, while something may happen.
func (l *rollout) year(t *testing.T) {
	t.Helper()
	var all []trouble
	for _, u := range l.users {
		l.tell("%s wants: %s", u.space.name, l.change(u))
		all = append(all, l.trouble())
	}
	l.forgetTurns(all...)
	calm := true
	var fine []func()
	for i, u := range l.users {
		calm = calm && all[i] == trouble{}
		if all[i] != (trouble{}) {
			l.tell("trouble of %s: %+v", u.space.name, all[i])
		}
		fine = append(fine, l.brew(t, all[i], u.space))
		l.meddled = l.meddled || all[i].others
		if all[i].faults {
			l.fault, l.faulty = l.faultOf, true
		}
		if all[i].lists {
			l.fault, l.faulty = l.faultOfList, true
		}
	}
	ended := l.disturbAll(t, all)
	var spaces []*workspace
	by := map[*workspace]int{}
	for i, u := range l.users {
		spaces, by[u.space] = append(spaces, u.space), i
	}
	together(func(w *workspace) {
		u, d := l.users[by[w]], all[by[w]]
		u.end = w.applyIn(t, u.configuration(), d)
		if u.end.killed && d.lost {
			w.lose(lastWrites)
		}
	}, spaces...)
	ended()
	for _, end := range fine {
		end()
	}
	l.fault = nil
	if calm {
		l.checkCalm(t)
	} else {
		l.repair(t)
	}
	l.settleAll(t)
}

// disturbAll lets other clients and conductors disturb the runs until the returned function is called.
func (l *rollout) disturbAll(t *testing.T, all []trouble) (end func()) {
	t.Helper()
	for _, d := range all {
		if d.others || d.restart {
			ended := make(chan struct{})
			go l.disturb(t, d, ended)
			return func() { ended <- struct{}{} }
		}
	}
	return func() {}
}

// checkCalm checks runs that nothing has disturbed.
func (l *rollout) checkCalm(t *testing.T) {
	t.Helper()
	for _, u := range l.users {
		if u.end.failed && !u.end.refused {
			l.broken("the apply of %s has failed, though nothing disturbed it", u.space.name)
		}
	}
	disturbed := l.faulty
	for _, u := range l.users {
		disturbed = disturbed || u.space.killed
	}
	if !disturbed { // a killed run leaves its sign of life, and so may one that cannot remove it
		l.checkLocks(t)
	}
}

// checkLocks checks that runs that have ended by themselves have left no record of a lock.
func (l *rollout) checkLocks(t *testing.T) {
	t.Helper()
	for _, record := range l.locks(t) {
		l.broken("a record of a lock is left: %v", record)
	}
}

// settleAll applies the configurations of all users until nothing is left to do. After each apply, one member more has changed at least, so
// as many applies as there are members are enough, and two for what was tainted.
func (l *rollout) settleAll(t *testing.T) {
	t.Helper()
	members := 0
	for _, u := range l.users {
		members += len(u.uses)
	}
	for range members + 2 {
		done := true
		for _, u := range l.users {
			if l.space = u.space; u.space.applyIn(t, u.configuration(), trouble{}).failed || !u.space.replan(t, u.configuration()).empty() {
				done = false
			}
		}
		if done {
			l.checkTurnNotes(t)
			return
		}
		l.repair(t)
	}
	l.broken("after %d applies of each user the machines are not as configured", members+2)
}

// checkTurnNotes checks that no machine is said to have failed although all are as configured, and that undisturbed runs leave no note.
func (l *rollout) checkTurnNotes(t *testing.T) {
	t.Helper()
	for _, n := range l.fake.Nodes() {
		extra, _ := n.Raw["extra"].(object)
		note, _ := extra["terraform_metal_turn"].(object)
		if failed, _ := note["failed"].(bool); failed && note["instance"] == n.InstanceUUID {
			l.broken("node %s is as configured, and keeps its group waiting: %v", n.Name, note)
		}
	}
	for _, u := range l.users {
		if len(u.uses) > 0 || u.space.killed || l.faulty || l.meddled { // a killed run may leave a note, which counts for nothing
			return
		}
	}
	for _, n := range l.fake.Nodes() { // everything was destroyed
		extra, _ := n.Raw["extra"].(object)
		if note := extra["terraform_metal_turn"]; note != nil {
			l.broken("node %s is free, and has the note of a turn: %v", n.Name, note)
		}
	}
}
