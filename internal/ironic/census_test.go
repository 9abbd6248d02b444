package ironic

import (
	"slices"
	"strings"
	"testing"
)

// site is one node for each reason for which a node does not match, and one that does.
func site() map[string]*Node {
	node := func(change func(*Node)) Node {
		n := Node{
			UUID: NewUUID(), Name: "n", ResourceClass: "baremetal", ProvisionState: "available", PowerState: "power off", Owner: "team-a",
			Traits: []string{"CUSTOM_NVME", "CUSTOM_GPU"},
		}
		change(&n)
		return n
	}
	return byUUID([]Node{
		node(func(n *Node) { n.Name = "fits" }),
		node(func(n *Node) { n.ResourceClass = "storage" }),
		node(func(n *Node) { n.ProvisionState = "active" }),
		node(func(n *Node) { n.ProvisionState = "active" }),
		node(func(n *Node) { n.ProvisionState = "manageable" }),
		node(func(n *Node) { n.Name, n.Maintenance = "mended", true }),
		node(func(n *Node) { n.Name, n.ProvisionState, n.InstanceUUID = "taken", "available", "somebody's" }),
		node(func(n *Node) { n.PowerState = "" }),
		node(func(n *Node) { n.Owner, n.Lessee = "team-b", "team-c" }),
		node(func(n *Node) { n.Owner, n.Lessee = "team-b", "team-a" }),
		node(func(n *Node) { n.Traits = []string{"CUSTOM_GPU"} }),
		node(func(n *Node) { n.Traits = nil }),
		node(func(n *Node) { n.ResourceClass, n.ProvisionState, n.Maintenance = "storage", "active", true }), // counts once
	}, func(n *Node) string { return n.UUID })
}

func TestTheCensusCountsWhatEachNodeLacksFirst(t *testing.T) {
	t.Parallel()
	all := site()
	var mended string
	for id, node := range all {
		if node.Name == "mended" {
			mended = id
		}
	}
	for name, tc := range map[string]struct {
		spec AllocationSpec
		want string
	}{
		"all wishes": {
			AllocationSpec{ResourceClass: "baremetal", Traits: []string{"CUSTOM_GPU", "CUSTOM_NVME"}, Owner: "team-a"},
			"2 of 13 nodes: 2 other class, 3 not available (2 active, 1 manageable), 1 in maintenance, 1 reserved already, " +
				"1 with unknown power state, 1 other owner, 1 without CUSTOM_GPU, 1 without CUSTOM_NVME",
		},
		"by name": {
			AllocationSpec{ResourceClass: "baremetal", CandidateNodes: []string{"fits"}},
			"1 of 1 candidate",
		},
		"by UUID": {
			AllocationSpec{ResourceClass: "baremetal", CandidateNodes: []string{mended, "fits", "nobody"}},
			"1 of 3 candidates: 1 in maintenance, 1 unknown to Ironic (nobody)",
		},
		"of any class": {AllocationSpec{CandidateNodes: []string{"fits"}}, "1 of 1 candidate"},
		"its own node": {
			AllocationSpec{UUID: "somebody's", ResourceClass: "baremetal", Traits: []string{"CUSTOM_SSD"}, CandidateNodes: []string{"taken"}},
			"0 of 1 candidate: 1 without CUSTOM_SSD",
		},
		"a node that runs already": {
			AllocationSpec{Node: "fits"}, "0 of 1 candidate: 1 not active (1 available)",
		},
		"unknown class": {AllocationSpec{ResourceClass: "gpu"}, "0 of 13 nodes: 13 other class"},
	} {
		if got := countMismatches(tc.spec, all).String(); got != tc.want {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
	if got := countMismatches(AllocationSpec{ResourceClass: "gpu"}, nil).String(); got != "0 of 0 nodes" {
		t.Errorf("an empty Ironic: %s", got)
	}
}

func TestEveryNodeIsCountedOnce(t *testing.T) {
	t.Parallel()
	all := site()
	for owner := range slices.Values([]string{"", "team-a", "team-z"}) {
		c := countMismatches(AllocationSpec{ResourceClass: "baremetal", Owner: owner, Traits: []string{"CUSTOM_NVME"}}, all)
		sum := c.Matching + c.OtherClass + c.Unavailable + c.Maintenance + c.Reserved + c.NoPower + c.Own
		for _, n := range c.Traits {
			sum += n
		}
		if sum != len(all) || c.Total != len(all) {
			t.Errorf("owner %q: %d counted of %d: %+v", owner, sum, len(all), c)
		}
	}
}

func TestTheAdviceFitsTheCensus(t *testing.T) {
	t.Parallel()
	for want, census := range map[string]Census{
		"Apply again":                  {Total: 3, Matching: 1},
		"set power_state":              {Total: 3, NoPower: 1},
		"Make more nodes available":    {Total: 3, OtherClass: 3},
		"target_state = \"available\"": {},
	} {
		if got := (&NoMatchError{Census: census}).Advice(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", census, got, want)
		}
	}
}
