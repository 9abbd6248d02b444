package simulate_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

var exchanges = flag.String("exchanges", "1-16", "which racks TestSimulate_machinesKeepTheirNodes changes: first-last")

// Hosts by count and by key gain, lose and exchange machines, while their nodes are in every state. No verb reaches a machine that runs
// something unless the plan named its node, and what runs and was not named runs on in the same node.
func TestSimulate_machinesKeepTheirNodes(t *testing.T) {
	t.Parallel()
	var first, last uint64
	if _, err := fmt.Sscanf(*exchanges, "%d-%d", &first, &last); err != nil {
		t.Fatalf("exchanges %q: %v", *exchanges, err)
	}
	for seed := first; seed <= last; seed++ {
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

	mu      sync.Mutex
	running map[string]fakeironic.Node // by machine: its node at the time of the plan, if that is in use
	hits    []hit
}

// hit is a verb that has reached a machine.
type hit struct {
	sent
	machine string
}

func changeRack(t *testing.T, seed uint64) {
	t.Helper()
	s := newSite(seed)
	s.secrets, s.fake.StepTime = []string{secret, userSecret}, time.Second
	r := &rack{apart: []string{"bmc", "mac", "name"}[s.below(3)], bare: map[string]bool{}}
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
		r.use(s)
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
		if !r.bare[machine] {
			config["metal_deployment."+at] = object{
				"node_id": reference{"metal_host." + at, "id"}, "image": object{"url": "http://images.test/v1", "checksum": checksum},
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
		r.count = slices.Insert(r.count, i, fmt.Sprint("new", len(all), s.below(100)))
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

// use lets other clients use a machine.
func (r *rack) use(s *site) {
	all := s.fake.Nodes()
	if len(all) == 0 {
		return
	}
	n := all[s.below(len(all))]
	switch use := s.below(5); {
	case n.ProvisionState == "available" && n.InstanceUUID == "" && use == 0:
		s.fake.Set(n.UUID, "instance_uuid", fmt.Sprintf("0b5be5de-0000-4000-8000-%012d", s.below(1000)))
		s.tell("another client reserves %s", n.Name)
	case n.ProvisionState == "active" && use < 3:
		state := []string{"rescue", "service failed", "deploy failed"}[use]
		s.fake.Set(n.UUID, "provision_state", state)
		s.tell("another client brings %s to %s", n.Name, state)
	}
}

// apply plans and applies the rack, perhaps with a kill, and checks what has reached the machines. It reports whether the plan succeeded.
func (r *rack) apply(t *testing.T, s *site, w *workspace) bool {
	t.Helper()
	r.mu.Lock()
	r.running, r.hits = map[string]fakeironic.Node{}, nil
	for _, n := range s.fake.Nodes() {
		if machine := r.machineOf(s, n); inUse(n) {
			r.running[machine] = n
		}
	}
	r.mu.Unlock()
	d := trouble{}
	if s.below(4) == 0 {
		d.kill = 1 + s.below(20)
	}
	end := w.applyIn(t, r.configuration(), d)
	r.check(s, end.plan)
	return !end.plan.failed && !end.failed && !end.killed
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
		if !made.names(was.UUID) && (!exists || !inUse(n) || r.machineOf(s, n) != machine) {
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
