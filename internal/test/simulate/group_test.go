package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

const groupNodes = 6

// groupOf is a group of allocations.
func groupOf(name string, size int) configuration {
	return configuration{"metal_allocation_group.a": {"name": name, "resource_class": fleetClass, "size": size}}
}

// moving is a group whose members with these numbers move to other nodes.
func moving(config configuration, numbers ...int) configuration {
	values := object{}
	for _, i := range numbers {
		values[fmt.Sprintf("a-%d", i)] = "now"
	}
	return with(config, "metal_allocation_group.a", "replace_members", values)
}

// groupPhase is a part of the life of a group in which the provider is killed.
type groupPhase struct {
	name     string
	from, to configuration
	want     []string      // the names of the allocations afterwards
	lose     string        // an allocation that another client deletes before
	then     configuration // is applied after the kill; nil: the same
	kills    kills
}

// groupNames are the names of the members of a group.
func groupNames(name string, size int) (names []string) {
	for i := range size {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
	}
	return names
}

// The provider is killed in every moment of a phase. It has one resource, so no state is saved before its end that could be lost.
func TestKill_everyMomentOfAGroup(t *testing.T) {
	t.Parallel()
	for _, p := range []groupPhase{
		{"create", configuration{}, groupOf("a", 3), groupNames("a", 3), "", nil, kills{4, 8}},
		{"create, and then fewer", configuration{}, groupOf("a", 3), groupNames("a", 1), "", groupOf("a", 1), kills{4, 8}},
		{"grow", groupOf("a", 1), groupOf("a", 3), groupNames("a", 3), "", nil, kills{3, 6}},
		{"grow, and then not", groupOf("a", 1), groupOf("a", 3), groupNames("a", 1), "", groupOf("a", 1), kills{3, 6}},
		{"grow, and then rename", groupOf("a", 1), groupOf("a", 3), groupNames("b", 1), "", groupOf("b", 1), kills{3, 6}},
		{"rename and grow, and then not", groupOf("a", 1), groupOf("b", 3), groupNames("b", 1), "", groupOf("b", 1), kills{3, 7}},
		{"grow, and then destroy", groupOf("a", 1), groupOf("a", 3), nil, "", configuration{}, kills{3, 6}},
		{"grow, and then less", groupOf("a", 1), groupOf("a", 4), groupNames("a", 2), "", groupOf("a", 2), kills{4, 8}},
		{"replace a lost member", groupOf("a", 3), groupOf("a", 3), groupNames("a", 3), "a-1", nil, kills{2, 4}},
		{"replace a lost member, and then destroy", groupOf("a", 3), groupOf("a", 3), nil, "a-1", configuration{}, kills{2, 4}},
		{"replace a lost member, and then less", groupOf("a", 3), groupOf("a", 3), groupNames("a", 1), "a-1", groupOf("a", 1), kills{2, 4}},
		{"rename and grow", groupOf("a", 2), groupOf("b", 3), groupNames("b", 3), "", nil, kills{2, 6}},
		{"shrink", groupOf("a", 3), groupOf("a", 1), groupNames("a", 1), "", nil, kills{1, 2}},
		{"move", groupOf("a", 3), moving(groupOf("a", 3), 1), groupNames("a", 3), "", nil, kills{2, 7}},
		{"move two", groupOf("a", 3), moving(groupOf("a", 3), 0, 1), groupNames("a", 3), "", nil, kills{3, 12}},
		{"move, and then not", groupOf("a", 3), moving(groupOf("a", 3), 1), groupNames("a", 3), "", groupOf("a", 3), kills{2, 7}},
		{"move and rename", groupOf("a", 2), moving(groupOf("b", 3), 1), groupNames("b", 3), "", nil, kills{3, 11}},
		{"move, and then less", groupOf("a", 3), moving(groupOf("a", 3), 2), groupNames("a", 1), "", groupOf("a", 1), kills{2, 7}},
		{"move, and then destroy", groupOf("a", 2), moving(groupOf("a", 2), 1), nil, "", configuration{}, kills{2, 7}},
		{"destroy", groupOf("a", 3), configuration{}, nil, "", nil, kills{1, 3}},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", p.name, after), func(t *testing.T) {
				t.Parallel()
				everyMoment(t, p.kills.of(after), func(t *testing.T, moment int) bool {
					t.Helper()
					return p.kill(t, death{moment: moment, after: after})
				})
			})
		}
	}
}

// kill lives through a phase in which the provider is killed, and checks what is left. It returns false if the phase has no such moment.
func (p groupPhase) kill(t *testing.T, when death) bool {
	t.Helper()
	s := newSite(uint64(when.moment))
	s.fake.AddFleet(groupNodes, fleetClass)
	w := s.workspace("w", nil)
	defer s.check(t, fmt.Sprintf("%s, moment %d, after %t", p.name, when.moment, when.after))
	if len(p.from) > 0 && w.apply(t, p.from, death{}).failed {
		s.broken("the first apply has failed")
		return false
	}
	if p.lose != "" {
		s.call(t, "DELETE", "allocations/"+p.lose, nil)
	}
	<-time.After(time.Hour) // so that marks of the first run are old
	end := w.apply(t, p.to, when)
	if end.failed {
		s.broken("the apply has failed")
	}
	<-time.After(10 * time.Minute) // less than the age of finished marks that a run may take over
	then := p.to
	if p.then != nil {
		then = p.then
	}
	if (end.killed || p.then != nil) && w.apply(t, then, death{}).failed {
		s.broken("the apply after the kill has failed")
	}
	if left := w.replan(t, then); !left.empty() {
		s.broken("the plan in the end is %s", left)
	}
	if p.then != nil && s.hasLock(t) { // the last apply reserved nothing
		s.lockOnceMore(t, groupOf("later", 1))
	}
	p.checkSite(t, s)
	return end.killed
}

// checkSite checks that the site has exactly the allocations of the group, each with a node of its own.
func (p groupPhase) checkSite(t *testing.T, s *site) {
	t.Helper()
	_, answer := s.call(t, "GET", "allocations", nil)
	var names []string
	nodes := map[any]bool{}
	for _, a := range answer["allocations"].([]any) {
		allocation, _ := a.(object)
		name, _ := allocation["name"].(string)
		names = append(names, name)
		nodes[allocation["node_uuid"]] = true
	}
	slices.Sort(names)
	reserved := 0
	for _, n := range s.fake.Nodes() {
		if n.InstanceUUID != "" {
			reserved++
		}
	}
	if !slices.Equal(names, p.want) || len(nodes) != len(p.want) || reserved != len(p.want) {
		s.broken("the allocations are %v, and %d nodes are reserved, want %v", names, reserved, p.want)
	}
	retired := 0
	for _, n := range s.fake.Nodes() {
		if n.Raw["retired"] == true {
			retired++
		}
	}
	moves, _ := p.to["metal_allocation_group.a"]["replace_members"].(object)
	if retired > len(moves) || p.then == nil && retired < len(moves) {
		s.broken("%d nodes are retired, want %d", retired, len(moves))
	}
	s.checkClean(t)
}

// deployedMember is a group of one member with a deployment.
func deployedMember() configuration {
	member := func(attribute string) pick {
		return pick{reference{"metal_allocation_group.a", "members"}, []any{"a-0", attribute}}
	}
	config := groupOf("a", 1)
	config["metal_deployment.a"] = object{
		"node_id": member("node_id"), "allocation_id": member("id"), "image": imageAt("http://images.test/v1"),
	}
	return config
}

// The provider is killed in every moment in which a member moves with its deployment. The next apply finishes the move, and nothing is
// deployed twice, also if the last states are lost.
func TestKill_everyMomentOfAMove(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for lost, floor := range map[time.Duration]kills{0: {9, 18}, lastWrites: {3, 12}} {
			t.Run(fmt.Sprintf("after %t, lost %s", after, lost), func(t *testing.T) {
				t.Parallel()
				everyMoment(t, floor.of(after), func(t *testing.T, moment int) bool {
					t.Helper()
					return killMove(t, death{moment: moment, after: after, lost: lost > 0}, lost)
				})
			})
		}
	}
}

// killMove lets a member move while the provider is killed, and checks what is left. It returns false if the move has no such moment.
func killMove(t *testing.T, when death, lost time.Duration) bool {
	t.Helper()
	s := newSite(uint64(when.moment))
	s.fake.AddFleet(groupNodes, fleetClass)
	w := s.workspace("w", nil)
	defer s.check(t, fmt.Sprintf("moment %d, after %t, lost %s", when.moment, when.after, lost))
	if w.apply(t, deployedMember(), death{}).failed {
		s.broken("the first apply has failed")
		return false
	}
	<-time.After(time.Hour)
	s.forget()
	to := moving(deployedMember(), 0)
	end := w.apply(t, to, when)
	if end.killed && lost > 0 {
		w.lose(lost)
	}
	if end.failed || end.killed && w.apply(t, to, death{}).failed {
		s.broken("an apply has failed")
	}
	if left := w.replan(t, to); !left.empty() {
		s.broken("the plan in the end is %s", left)
	}
	s.wantNodes("active, retired false, reserved true", "manageable, retired true, reserved false")
	sent := map[string]int{}
	for _, v := range s.verbs {
		sent[v.target]++
	}
	if sent["deleted"] != 1 || sent["active"] != 1 || sent["rebuild"] != 0 {
		s.broken("sent were %v", sent)
	}
	s.cleanLocks(t, end)
	return end.killed
}

// wantNodes checks which nodes are not available, and how.
func (s *site) wantNodes(want ...string) {
	var found []string
	for _, n := range s.fake.Nodes() {
		if state := n.ProvisionState; state != "available" {
			found = append(found, fmt.Sprintf("%s, retired %v, reserved %t", state, n.Raw["retired"], n.InstanceUUID != ""))
		}
	}
	if slices.Sort(found); !slices.Equal(found, want) {
		s.broken("the nodes are %q, want %q", found, want)
	}
}

// cleanLocks removes the lock that a killed run may have left, that of a group or that of the limit, and checks that nothing else is left.
func (s *site) cleanLocks(t *testing.T, end outcome) {
	t.Helper()
	if end.killed && s.hasLock(t) {
		later := groupOf("later", 1)
		maps.Copy(later, laterHost())
		s.lockOnceMore(t, later)
	}
	s.checkClean(t)
}

// The provider is killed in every moment of a rebuild, or a first deployment, that fails and leads to a quarantine. The applies after it
// finish the quarantine, and deploy another node.
func TestKill_everyMomentOfAFailedRebuild(t *testing.T) {
	t.Parallel()
	for first, floor := range map[bool]kills{false: {5, 10}, true: {5, 14}} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("first deployment %t, after %t", first, after), func(t *testing.T) {
				t.Parallel()
				everyMoment(t, floor.of(after), func(t *testing.T, moment int) bool {
					t.Helper()
					return killFailedRebuild(t, first, death{moment: moment, after: after})
				})
			})
		}
	}
}

// killFailedRebuild lets a rebuild, or the first deployment, fail while the provider is killed, and checks what is left. It returns false
// if there is no such moment.
func killFailedRebuild(t *testing.T, first bool, when death) bool {
	t.Helper()
	s := newSite(uint64(when.moment))
	s.fake.AddFleet(groupNodes, fleetClass)
	w := s.workspace("w", nil)
	defer s.check(t, fmt.Sprintf("first deployment %t, moment %d, after %t", first, when.moment, when.after))
	broken := "" // the node that is deployed first
	if !first {
		from := with(deployedMember(), "metal_deployment.a", "on_failure", "quarantine")
		if w.apply(t, from, death{}).failed {
			s.broken("the first apply has failed")
			return false
		}
		<-time.After(time.Hour)
		s.forget()
		broken = w.text("metal_deployment.a", "id")
	}
	s.fake.Fail = func(node fakeironic.Node, verb string) string {
		if broken == "" && verb == "active" {
			broken = node.UUID
		}
		if node.UUID == broken && (verb == "rebuild" || verb == "active") {
			return "no space left on device"
		}
		return ""
	}
	to := with(deployedMember(), "metal_deployment.a", "on_failure", "quarantine")
	to["metal_deployment.a"]["image"] = imageAt("http://images.test/v2")
	end := w.apply(t, to, when)
	if !end.killed && !end.failed {
		s.broken("the rebuild has not failed")
	}
	for tries := 0; w.apply(t, to, death{}).failed; tries++ {
		if tries > 1 {
			s.broken("the apply fails again and again")
			return false
		}
	}
	if left := w.replan(t, to); !left.empty() {
		s.broken("the plan in the end is %s", left)
	}
	<-time.After(time.Hour) // Ironic cleans the machine
	s.wantNodes("active, retired false, reserved true", "manageable, retired true, reserved false")
	s.forgetReservations()
	s.cleanLocks(t, end)
	return end.killed
}

// forgetReservations removes the marks of reservations from retired nodes, as the next deployment there would.
func (s *site) forgetReservations() {
	for _, n := range s.fake.Nodes() {
		if extra, _ := n.Raw["extra"].(object); n.Raw["retired"] == true {
			delete(extra, string(notes.MarkReservation))
			s.fake.Set(n.UUID, "extra", extra)
		}
	}
}
