package simulate_test

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	secret     = "s3cret-bmc-pa55"
	mac        = "52:54:00:00:00:01"
	lastWrites = 20 * time.Second // what a remote backend may lose of the states
)

// oneOfEach is a host with a port, an allocation of it, and a deployment.
func oneOfEach(image string) configuration {
	return configuration{
		"metal_host.a": {
			"name": "a", "driver": "fake-hardware", "resource_class": "baremetal", "target_state": "available", "power_state": "off",
			"driver_info_wo": object{"redfish_password": secret}, "driver_info_wo_version": "1", "ports": object{mac: object{}},
		},
		"metal_allocation.a": {"name": "a", "resource_class": "baremetal", "candidate_nodes": []any{reference{"metal_host.a", "id"}}},
		"metal_deployment.a": {
			"node_id": reference{"metal_allocation.a", "node_id"}, "allocation_id": reference{"metal_allocation.a", "id"},
			"image": imageAt("http://images.test/" + image),
		},
	}
}

// without removes a setting from a configuration.
func without(config configuration, address, setting string) configuration {
	delete(config[address], setting)
	return config
}

// with sets a setting of a configuration.
func with(config configuration, address, setting string, value any) configuration {
	config[address][setting] = value
	return config
}

// cabled is a host whose port is in a group.
func cabled(group string) configuration {
	host := oneOfEach("v1")["metal_host.a"]
	host["port_groups"], host["ports"] = object{group: object{"mode": "802.3ad"}}, object{mac: object{"port_group": group}}
	return configuration{"metal_host.a": host}
}

// unallocated is a configuration whose deployment reserves its node itself.
func unallocated(image string) configuration {
	config := without(with(oneOfEach(image), "metal_deployment.a", "node_id", reference{"metal_host.a", "id"}), "metal_deployment.a",
		"allocation_id")
	delete(config, "metal_allocation.a")
	return config
}

// adopting is a configuration whose deployment adopts the machine.
func adopting() configuration {
	config := without(without(unallocated("v1"), "metal_deployment.a", "image"), "metal_host.a", "power_state")
	config = with(config, "metal_host.a", "target_state", "manageable")
	return with(with(config, "metal_deployment.a", "adopt", true), "metal_deployment.a", "on_destroy", "undeploy")
}

// connected is a configuration whose deployment has a VIF.
func connected(vif string) configuration {
	config := with(unallocated("v1"), "metal_host.a", "hardware_interfaces", object{"network": "flat"})
	return with(config, "metal_deployment.a", "vifs", []any{object{"id": "00000000-0000-4000-8000-00000000000" + vif}})
}

// checked is a configuration whose machine has a ready check.
func checked(image, power string) configuration {
	config := with(oneOfEach(image), "metal_deployment.a", "power_state", power)
	return with(config, "metal_deployment.a", "ready_check", readyCheck(slow, "a"))
}

// rescued is a configuration whose machine is in rescue mode.
func rescued(version int) configuration {
	return with(oneOfEach("v1"), "metal_deployment.a", "rescue",
		object{"password_wo": secret, "password_wo_version": strconv.Itoa(version)})
}

// inspected is a configuration of a host that is inspected again for another trigger.
func inspected(trigger string) configuration {
	host := with(oneOfEach("v1"), "metal_host.a", "inspect_triggers", object{"n": trigger})["metal_host.a"]
	return configuration{"metal_host.a": host}
}

// restarted is a configuration whose machine is on, and is shut down and switched on for another trigger.
func restarted(trigger string) configuration {
	config := without(oneOfEach("v1"), "metal_host.a", "power_state")
	config["metal_deployment.a"]["power_state"], config["metal_deployment.a"]["power_off_mode"] = "on", "graceful"
	return with(config, "metal_deployment.a", "restart_triggers", object{"n": trigger})
}

// TestMain collects garbage less often: lives leave much of it, and end soon.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// inVirtualTime runs a test in which hours pass in no time. It waits until all that is left of killed processes has ended.
func inVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	schemas()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(2 * time.Hour) }()
		test(t)
	})
}

// phase is a part of a life in which the provider is killed.
type phase struct {
	name  string
	from  configuration // is applied before
	to    configuration // is applied, killed, and applied again
	verbs []string      // of the machine, during the phase; one that ends with + is sent again after a kill
	kills kills
	lost  kills // if the last states are lost, too; 0: the phase saves none before its end
}

// kills is how often a provider is killed at least: before and after a request is executed. A phase of fewer moments tests less than
// before.
type kills struct{ before, after int }

// of returns one of the numbers.
func (k kills) of(after bool) int {
	if after {
		return k.after
	}
	return k.before
}

// everyMoment kills in one moment after the other, until a phase has no more. It fails the test if that are fewer than the floor.
func everyMoment(t *testing.T, floor int, kill func(t *testing.T, moment int) (killed bool)) {
	t.Helper()
	moment := 0
	for killed := true; killed && !t.Failed(); {
		moment++
		inVirtualTime(t, func(t *testing.T) { killed = kill(t, moment) })
	}
	if killed := moment - 1; killed < max(floor, 1) && !t.Failed() {
		t.Errorf("killed %d times, and the phase had %d moments before", killed, floor)
	}
}

// The provider is killed in every moment of a phase; with -everything at every request, which must find nothing more.
func TestKill_everyMoment(t *testing.T) {
	t.Parallel()
	for _, p := range []phase{
		{"create", configuration{}, oneOfEach("v1"), []string{"manage", "provide", "active"}, kills{8, 15}, kills{3, 7}},
		{
			"create without power_state",
			configuration{},
			without(oneOfEach("v1"), "metal_host.a", "power_state"),
			[]string{"manage", "provide", "active"},
			kills{8, 15},
			kills{3, 7},
		},
		{
			"create with a VIF, without an allocation",
			configuration{},
			connected("1"),
			[]string{"manage", "provide", "active"},
			kills{6, 15},
			kills{2, 7},
		},
		{"adopt", configuration{}, adopting(), []string{"manage", "adopt"}, kills{4, 7}, kills{2, 3}},
		{"another VIF", connected("1"), connected("2"), nil, kills{1, 2}, kills{}},
		{"another address of the image", oneOfEach("v1"), mirrored(oneOfEach("v1")), nil, kills{1, 1}, kills{}},
		{
			"create protected",
			configuration{},
			with(oneOfEach("v1"), "metal_deployment.a", "protected", true),
			[]string{"manage", "provide", "active"},
			kills{8, 16},
			kills{3, 8},
		},
		{"create with a port group", configuration{}, cabled("bond0"), []string{"manage", "provide"}, kills{4, 9}, kills{}},
		{"recable", cabled("bond0"), cabled("bond1"), nil, kills{1, 6}, kills{}},
		{"rebuild", oneOfEach("v1"), oneOfEach("v2"), []string{"rebuild"}, kills{2, 4}, kills{}},
		{
			"create with a ready check",
			configuration{},
			checked("v1", "on"),
			[]string{"manage", "provide", "active"},
			kills{8, 15},
			kills{3, 7},
		},
		{"rebuild with a ready check", checked("v1", "on"), checked("v2", "on"), []string{"rebuild"}, kills{2, 4}, kills{}},
		{"switch on with a ready check", checked("v1", "off"), checked("v1", "on"), nil, kills{1, 1}, kills{}},
		{"destroy", oneOfEach("v1"), configuration{}, []string{"deleted"}, kills{7, 8}, kills{1, 2}},
		{"restart softly", restarted("1"), without(restarted("2"), "metal_deployment.a", "power_state"), nil, kills{2, 4}, kills{}},
		{"rescue", oneOfEach("v1"), rescued(1), []string{"rescue+"}, kills{2, 3}, kills{}},
		{"rescue with a new password", rescued(1), rescued(2), []string{"rescue+"}, kills{2, 3}, kills{}},
		{"end a rescue", rescued(1), oneOfEach("v1"), []string{"unrescue"}, kills{2, 3}, kills{}},
		{"inspect again", inspected("1"), inspected("2"), []string{"manage", "inspect", "provide"}, kills{1, 1}, kills{}},
		{"RAID", cards(object{}), cards(object{"raid": volumes("v1")}), []string{"clean"}, kills{2, 4}, kills{}},
		{"firmware", cards(object{}), cards(object{"firmware": firmware()}), []string{"clean"}, kills{2, 3}, kills{}},
		{"qualify a new host", configuration{}, qualified(object{}), []string{"manage", "clean", "provide"}, kills{4, 9}, kills{}},
		{
			"qualify a replaced machine",
			qualified(object{}),
			qualified(object{"replaced": object{"part": "machine", "on": "1"}}),
			[]string{"manage", "clean", "provide"},
			kills{4, 6},
			kills{},
		},
		{"secure boot", secured(nil), secured(true), nil, kills{1, 1}, kills{}},
		{"inspect a new host", configuration{}, free(object{"inspect": true}), []string{"manage", "inspect"}, kills{3, 6}, kills{}},
		{"end a retirement", retired(true), retired(false), []string{"provide"}, kills{1, 2}, kills{}},
		{"replace", replaced("v1"), replaced("v2"), []string{"deleted", "active"}, kills{3, 6}, kills{}},
		{"another live ISO", booted("v1", "n1"), booted("v2", "n2"), nil, kills{2, 5}, kills{}},
		{"destroy in rescue", rescued(1), configuration{}, []string{"deleted"}, kills{7, 8}, kills{1, 2}},
	} {
		for _, after := range []bool{false, true} {
			for lost, floor := range map[time.Duration]int{0: p.kills.of(after), lastWrites: p.lost.of(after)} {
				if lost > 0 && floor == 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, after %t, lost %s", p.name, after, lost), func(t *testing.T) {
					t.Parallel()
					everyMoment(t, floor, func(t *testing.T, moment int) bool {
						t.Helper()
						return p.kill(t, death{moment: moment, after: after, lost: lost > 0}, lost)
					})
				})
			}
		}
	}
}

// kill lives through a phase in which the provider is killed, and checks what is left. It returns false if the phase has no such
// moment.
func (p phase) kill(t *testing.T, when death, lost time.Duration) bool {
	t.Helper()
	s := newSite(uint64(when.moment))
	s.secrets = []string{secret}
	if lost > 0 {
		s.fake.StepTime = 2 * time.Second // so that all states of the phase are lost
	}
	w := s.workspace("w", nil)
	w.logs = p.to["metal_deployment.a"]["rescue"] != nil // in which the password must not be
	defer s.check(t, fmt.Sprintf("%s, moment %d, after %t, lost %s", p.name, when.moment, when.after, lost))
	if p.from["metal_deployment.a"]["rescue"] != nil && w.apply(t, oneOfEach("v1"), death{}).failed { // no new deployment is in rescue mode
		s.broken("the deployment before the first apply has failed")
		return false
	}
	if len(p.from) > 0 {
		if w.apply(t, p.from, death{}).failed {
			s.broken("the first apply has failed")
			return false
		}
	}
	<-time.After(time.Minute) // so that these states are not lost
	s.forget()
	end := w.apply(t, p.to, when)
	if end.failed {
		s.broken("the apply has failed")
	}
	if end.killed && lost > 0 {
		w.lose(lost)
		s.tell("the states of the last %s are lost", lost)
	}
	if end.killed && w.apply(t, p.to, death{}).failed {
		s.broken("the apply after the kill has failed")
	}
	if left := w.replan(t, p.to); !left.empty() {
		s.broken("the plan in the end is %s", left)
	}
	p.checkMachine(t, s, w)
	s.checkReady(p.to, w.state())
	if end.killed && s.hasLock(t) {
		s.lockOnceMore(t, laterHost())
	}
	s.checkClean(t)
	return end.killed
}

// checkMachine checks that the site has exactly what is configured, and what was sent to the machine.
func (p phase) checkMachine(t *testing.T, s *site, w *workspace) {
	t.Helper()
	_, answer := s.call(t, "GET", "ports", nil)
	nodes, ports := len(s.fake.Nodes()), len(answer["ports"].([]any))
	if want := min(len(p.to), 1); nodes != want || ports != want || len(w.state()) != len(p.to) {
		s.broken("there are %d nodes, %d ports, and %d resources in state", nodes, ports, len(w.state()))
	}
	p.checkCabling(t, s)
	if p.to["metal_deployment.a"]["restart_triggers"] != nil && s.fake.Nodes()[0].PowerState != "power on" {
		s.broken("the machine is %s after its restart", s.fake.Nodes()[0].PowerState)
	}
	sent := map[string]int{}
	for _, v := range s.verbs {
		if isPower(v.target) {
			continue
		}
		sent[v.target]++
	}
	want := map[string]int{}
	for _, target := range p.verbs {
		if name, again := strings.CutSuffix(target, "+"); again {
			target = name
			sent[target] = min(sent[target], 1)
		}
		want[target]++
	}
	if !maps.Equal(sent, want) {
		s.broken("the machine was sent %v, want %v", sent, want)
	}
}

// checkCabling checks that the site has exactly the port groups that are configured, and that no node is left in maintenance.
func (p phase) checkCabling(t *testing.T, s *site) {
	t.Helper()
	_, answer := s.call(t, "GET", "portgroups", nil)
	groups, _ := answer["portgroups"].([]any)
	configured, _ := p.to["metal_host.a"]["port_groups"].(object)
	if len(groups) != len(configured) {
		s.broken("there are the port groups %v", groups)
	}
	for _, n := range s.fake.Nodes() {
		if n.Maintenance {
			s.broken("node %s is left in maintenance", n.Name)
		}
	}
}

// locks returns what the lock records say that exist. The identity of the site is a chassis, too, and stays, as does a freeze.
func (s *site) locks(t *testing.T) (all []string) {
	t.Helper()
	_, answer := s.call(t, "GET", "chassis", nil)
	left, _ := answer["chassis"].([]any)
	for _, c := range left {
		record, _ := c.(object)
		if about, _ := record["description"].(string); !strings.Contains(about, "identity of this Ironic") &&
			!strings.Contains(about, "metal freeze") {
			all = append(all, about)
		}
	}
	return all
}

// hasLock reports whether a lock record exists.
func (s *site) hasLock(t *testing.T) bool { return len(s.locks(t)) > 0 }

// laterHost is a configuration that needs the lock of the limit.
func laterHost() configuration {
	return configuration{"metal_host.later": {"name": "later", "driver": "fake-hardware", "target_state": "available"}}
}

// lockOnceMore lets another workspace apply and destroy a configuration that needs the lock. That removes the record of a run that was
// killed while it held the lock.
func (s *site) lockOnceMore(t *testing.T, later configuration) {
	t.Helper()
	w := s.workspace("later", nil)
	for _, config := range []configuration{later, {}} {
		if w.apply(t, config, death{}).failed {
			s.broken("a later run has failed")
		}
	}
}

// checkClean checks that the runs have left no lock, no notes except finished marks, and nothing twice.
func (s *site) checkClean(t *testing.T) {
	t.Helper()
	if left := s.locks(t); len(left) > 0 {
		s.broken("a lock is left: %v", left)
	}
	_, answer := s.call(t, "GET", "allocations", nil)
	allocations, _ := answer["allocations"].([]any)
	names := map[any]bool{}
	for _, a := range allocations {
		allocation, _ := a.(object)
		if name := allocation["name"]; name != nil && names[name] {
			s.broken("allocation %v exists twice", name)
		} else {
			names[name] = true
		}
		s.checkNotes("allocation", allocation)
	}
	for _, n := range s.fake.Nodes() {
		s.checkNotes("node", n.Raw)
	}
}

// lasting are the notes that may stay on a node.
var lasting = []string{"boot", "cabling", "discovery", "enrolled", "erasure", "failures", "hardware", "inspection", "replaced", "service"}

// isEnded reports whether a note of a qualification says that it has ended, and its parameters are gone.
func isEnded(note any, node object) bool {
	values, _ := note.(object)
	info, _ := node["driver_info"].(object)
	return values["begun"] == nil && info["agent_burnin_cpu_timeout"] == nil
}

// checkNotes checks the notes on a node or an allocation.
func (s *site) checkNotes(what string, of object) {
	extra, _ := of["extra"].(object)
	for key, value := range extra {
		switch {
		case !strings.HasPrefix(key, "terraform_metal_"), slices.Contains(lasting, strings.TrimPrefix(key, "terraform_metal_")):
		case key == "terraform_metal_restoring" && isRestored(value):
		case key == "terraform_metal_qualification" && isEnded(value, of):
		case key == "terraform_metal_created" && what == "allocation":
		case key == "terraform_metal_quarantine" && of["retired"] == true:
		case (key == "terraform_metal_turn" || key == "terraform_metal_host_turn") && of["instance_uuid"] != nil: // a member that has taken its turn
		case (key == "terraform_metal_creation" || key == "terraform_metal_reservation") && isDone(value):
		// another client undeployed the node during a creation
		case key == "terraform_metal_reservation" && s.meddled && of["instance_uuid"] == nil:
		default:
			s.broken("%s %v has the note %s: %v", what, of["name"], key, value)
		}
	}
}

// isRestored reports whether the note on a node says that its record was restored.
func isRestored(note any) bool {
	fields, _ := note.(object)
	return fields["done"] == true
}

// isDone reports whether the mark of a creation says that it is finished.
func isDone(mark any) bool {
	runs, _ := mark.(object)
	for _, run := range runs {
		fields, _ := run.(object)
		if done, _ := fields["done"].(string); done == "" {
			return false
		}
	}
	return len(runs) == 1
}
