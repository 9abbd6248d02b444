package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

var exchanges = seedsFlag("exchanges", "1-16", "which racks TestSimulate_machinesKeepTheirNodes changes")

// Hosts by count and by key gain, lose and exchange machines, while their nodes are in every state. No verb reaches a machine that runs
// something unless the plan named its node, and what runs and was not named runs on in the same node.
func TestSimulate_machinesKeepTheirNodes(t *testing.T) {
	t.Parallel()
	for seed := range seedsOf(t, exchanges) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { changeRack(t, seed) })
		})
	}
}

// rack is what a user wants of some machines, and which node each of them has.
type rack struct {
	apart string   // what tells the machines apart: bmc, mac or name
	count []string // the machines of hosts with count
	keyed []string // those of hosts with for_each, by the position of the key
	bare  map[string]bool
	// the target_state of the hosts of machines that run what others have installed, and which the user adopts
	adopts map[string]string
	wild   map[string]bool // those of them, as machineOf names them, that Ironic does not know to run something

	mu      sync.Mutex
	running map[string]fakeironic.Node // by machine: its node at the time of the plan, if that is in use; empty for one of wild
	hits    []hit
}

// hit is a verb that has reached a machine.
type hit struct {
	sent
	machine string
}

func changeRack(t *testing.T, seed uint64) {
	t.Helper()
	s := randomSite(seed)
	s.secrets, s.fake.StepTime = []string{secret, userSecret}, time.Second
	r := &rack{
		apart: []string{"bmc", "mac", "name"}[s.below(3)], bare: map[string]bool{}, adopts: map[string]string{}, wild: map[string]bool{},
	}
	s.rack = r
	defer s.check(t, fmt.Sprintf("seed %d", seed))
	for i := range 1 + s.below(3) {
		r.count = append(r.count, fmt.Sprint("m", i))
		r.keyed = append(r.keyed, fmt.Sprint("k", i))
	}
	for _, machine := range slices.Concat(r.count, r.keyed) {
		r.bare[machine] = s.below(4) == 0
	}
	w := s.workspace("w", nil)
	w.apply(t, r.configuration(), death{})
	for range 4 + s.below(4) {
		r.lose(t, s, w)
		r.use(t, s, w)
		count, keyed := slices.Clone(r.count), slices.Clone(r.keyed)
		s.tell("the user wants: %s", r.change(s))
		if !r.apply(t, s, w) {
			s.tell("the user gives the change up")
			r.count, r.keyed = count, keyed
			r.apply(t, s, w)
		}
		if len(s.faults) > 0 {
			return
		}
	}
	r.visit(t, s, w, seed)
}

// configuration returns the hosts of the rack, and a deployment on each that is not bare.
func (r *rack) configuration() configuration {
	config := configuration{}
	add := func(list string, i int, machine string) {
		at := fmt.Sprintf("%s%d", list, i)
		host := object{"name": "rack-" + machine, "resource_class": "baremetal", "target_state": "available", "driver": "fake-hardware"}
		switch r.apart {
		case "bmc":
			delete(host, "driver")
			host["bmc"] = bmcAt("redfish", machine)
		case "mac":
			host["ports"] = object{macOf(machine, 0): object{}}
		}
		config["metal_host."+at] = host
		switch target := r.adopts[machine]; {
		case target != "":
			host["target_state"] = target
			config["metal_deployment."+at] = object{"node_id": reference{"metal_host." + at, "id"}, "adopt": true, "on_destroy": "undeploy"}
		case !r.bare[machine]:
			config["metal_deployment."+at] = object{
				"node_id": reference{"metal_host." + at, "id"}, "image": imageAt("http://images.test/v1"),
			}
		}
	}
	for i, machine := range r.count {
		add("count", i, machine)
	}
	for i, machine := range r.keyed {
		if machine != "" {
			add("key", i, machine)
		}
	}
	return config
}

// change changes which machines the hosts have, and says how.
func (r *rack) change(s *site) string {
	all := slices.Concat(r.count, r.keyed)
	switch i := s.below(len(r.count) + 1); s.below(7) {
	case 0, 1:
		machine := fmt.Sprintf("new%d-%d", len(all), s.below(100))
		if r.install(s, machine) {
			i = len(r.count) // otherwise it would be refused, because the list shifts
		}
		r.count = slices.Insert(r.count, i, machine)
		return fmt.Sprintf("an entry at %d of the list", i)
	case 2, 3:
		if len(r.count) > 0 {
			i %= len(r.count)
			r.count = slices.Delete(r.count, i, i+1)
		}
		return fmt.Sprintf("no entry at %d of the list", i)
	case 4:
		if len(r.count) > 1 {
			i = 1 + i%(len(r.count)-1)
			r.count[0], r.count[i] = r.count[i], r.count[0]
		}
		return fmt.Sprintf("the entries at 0 and %d of the list exchanged", i)
	case 5:
		i = s.below(len(r.keyed))
		r.keyed = append(r.keyed, r.keyed[i])
		r.keyed[i] = ""
		return fmt.Sprintf("another key in place of %d", i)
	}
	i := s.below(len(r.keyed))
	if len(r.count) == 0 || r.keyed[i] == "" {
		return "nothing else"
	}
	r.keyed[i], r.count[0] = r.count[0], r.keyed[i]
	return fmt.Sprintf("the machine of key %d in the list, and the other way", i)
}

// use lets other clients use a machine, or an operator run a command of the program metal.
func (r *rack) use(t *testing.T, s *site, w *workspace) {
	t.Helper()
	all := s.fake.Nodes()
	if len(all) == 0 {
		return
	}
	n := all[s.below(len(all))]
	switch use := s.below(6); {
	case use > 3 && operations[n.ProvisionState] != nil:
		r.operate(t, s, w, n)
	case stuck(n.ProvisionState):
		s.restartConductor()
	case n.ProvisionState == "available" && n.InstanceUUID == "" && use == 0:
		s.fake.Set(n.UUID, "instance_uuid", fmt.Sprintf(foreign+"-0000-4000-8000-%012d", s.below(1000)))
		s.tell("another client reserves %s", n.Name)
	case n.ProvisionState == "active" && use < 3:
		s.bring(n, inUseStates[s.below(len(inUseStates))])
	case n.ProvisionState == "available" && n.InstanceUUID == "" && use == 1:
		s.bring(n, freeStates[s.below(len(freeStates))])
	}
}

// apply plans and applies the rack, perhaps with a kill, and checks what has reached the machines. It reports whether the plan succeeded.
func (r *rack) apply(t *testing.T, s *site, w *workspace) bool {
	t.Helper()
	r.look(s)
	d := trouble{}
	if s.below(4) == 0 {
		d.kill = 1 + s.below(20)
	}
	end := w.applyIn(t, r.configuration(), d)
	if end.killed {
		<-time.After(10 * s.latency) // what it has sent may still arrive
	}
	r.check(s, end.plan)
	return !end.plan.failed && !end.failed && !end.killed
}

// install lets others install something on a new machine, or not.
func (r *rack) install(s *site, machine string) (done bool) {
	if done = s.below(2) == 0; done {
		r.adopts[machine] = []string{"manageable", "available", "available"}[s.below(3)]
		named := machine
		if r.apart == "mac" {
			named = macOf(machine, 0)
		}
		r.wild[named] = true
	}
	return done
}

// look notes what runs on which machine.
func (r *rack) look(s *site) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.hits = map[string]fakeironic.Node{}, nil
	for _, n := range s.fake.Nodes() {
		if machine := r.machineOf(s, n); inUse(n) {
			r.running[machine] = n
			delete(r.wild, machine)
		}
	}
	for machine := range r.wild {
		r.running[machine] = fakeironic.Node{}
	}
}

// inUse reports whether a machine runs something or is reserved.
func inUse(n fakeironic.Node) bool {
	return n.InstanceUUID != "" || slices.Contains([]string{"active", "deploy failed", "rescue", "service failed"}, n.ProvisionState)
}

// machineOf returns the machine that a node controls.
func (r *rack) machineOf(s *site, n fakeironic.Node) string {
	switch r.apart {
	case "bmc":
		return strings.TrimSuffix(strings.TrimPrefix(bmcOf(n), "bmc-"), ".test")
	case "mac":
		_, answer, _ := s.send("GET", "nodes/"+n.UUID+"/ports", nil)
		var macs []string
		all, _ := answer["ports"].([]any)
		for _, port := range all {
			macs = append(macs, fmt.Sprint(port.(object)["address"]))
		}
		return strings.Join(macs, " ")
	}
	return strings.TrimPrefix(n.Name, "rack-")
}

// reach notes the machine that a verb has reached, of a node that may have changed since the plan.
func (r *rack) reach(s *site, v sent) {
	if r == nil || v.target == "manage" || v.target == "abort" || v.target == "adopt" {
		return
	}
	n, _ := s.fake.Node(v.node)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits = append(r.hits, hit{v, r.machineOf(s, n)})
}

// check checks what an apply has done to the machines that were in use at the time of its plan.
func (r *rack) check(s *site, made *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hits {
		if n, runs := r.running[h.machine]; runs && !made.names(n.UUID) {
			s.broken("%s sent %s to machine %s, which ran in node %s, and the plan (%s) did not name that", h.run, h.target, h.machine,
				n.Name, made)
		}
	}
	for machine, was := range r.running {
		n, exists := s.fake.Node(was.UUID)
		if !r.wild[machine] && !made.names(was.UUID) && (!exists || !inUse(n) || r.machineOf(s, n) != machine) {
			s.broken("machine %s ran in node %s, which the plan (%s) did not name: now it is %s in state %s, of machine %s", machine,
				was.Name, made, n.Name, n.ProvisionState, r.machineOf(s, n))
		}
	}
}

// names reports whether a plan says that something happens to what a node runs: its host or its deployment is destroyed or replaced, or its
// deployment changes.
func (p *plan) names(node string) bool {
	for address, c := range p.changes {
		if c.refreshed == nil || c.refreshed.node() != node {
			continue
		}
		if c.action == remove || c.action == replace || c.action == update && kindName(address) == "metal_deployment" {
			return true
		}
	}
	return false
}
