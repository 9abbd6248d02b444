package allocate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// site is one node for each reason for which a node does not match, and one that does.
func site() map[string]*ironic.Node {
	node := func(change func(*ironic.Node)) ironic.Node {
		n := ironic.Node{
			UUID: ironic.NewUUID(), Name: "n", ResourceClass: "baremetal", ProvisionState: "available", PowerState: "power off",
			Owner:  "team-a",
			Traits: []string{"CUSTOM_NVME", "CUSTOM_GPU"},
		}
		change(&n)
		return n
	}
	return ironic.ByUUID([]ironic.Node{
		node(func(n *ironic.Node) { n.Name = "fits" }),
		node(func(n *ironic.Node) { n.ResourceClass = "storage" }),
		node(func(n *ironic.Node) { n.ProvisionState = "active" }),
		node(func(n *ironic.Node) { n.ProvisionState = "active" }),
		node(func(n *ironic.Node) { n.ProvisionState = "manageable" }),
		node(func(n *ironic.Node) { n.Name, n.Maintenance = "mended", true }),
		node(func(n *ironic.Node) {
			n.Name, n.ProvisionState, n.InstanceUUID = "taken", "available", "other-instance"
		}),
		node(func(n *ironic.Node) { n.PowerState = "" }),
		node(func(n *ironic.Node) { n.Owner, n.Lessee = "team-b", "team-c" }),
		node(func(n *ironic.Node) { n.Owner, n.Lessee = "team-b", "team-a" }),
		node(func(n *ironic.Node) { n.Traits = []string{"CUSTOM_GPU"} }),
		node(func(n *ironic.Node) { n.Traits = nil }),
		node(func(n *ironic.Node) { n.ResourceClass, n.ProvisionState, n.Maintenance = "storage", "active", true }), // counts once
	}, func(n *ironic.Node) string { return n.UUID })
}

// countMismatches counts the nodes that match what Ironic matches itself.
func countMismatches(spec ironic.AllocationSpec, all map[string]*ironic.Node) Census {
	census, _, _ := sift(Request{AllocationSpec: spec}, all, time.Time{})
	return census
}

func TestCensus_countsFirstLack(t *testing.T) {
	t.Parallel()
	all := site()
	var mended string
	for id, node := range all {
		if node.Name == "mended" {
			mended = id
		}
	}
	for name, tc := range map[string]struct {
		spec ironic.AllocationSpec
		want string
	}{
		"all wishes": {
			ironic.AllocationSpec{ResourceClass: "baremetal", Traits: []string{"CUSTOM_GPU", "CUSTOM_NVME"}, Owner: "team-a"},
			"2 of 13 nodes match: 2 other class, 3 not available (2 active, 1 manageable), 1 in maintenance, 1 reserved already, " +
				"1 with unknown power state, 1 other owner, 1 without CUSTOM_GPU, 1 without CUSTOM_NVME",
		},
		"by name": {
			ironic.AllocationSpec{ResourceClass: "baremetal", CandidateNodes: []string{"fits"}},
			"1 of 1 candidate matches",
		},
		"by UUID": {
			ironic.AllocationSpec{ResourceClass: "baremetal", CandidateNodes: []string{mended, "fits", "unknown"}},
			"1 of 3 candidates matches: 1 in maintenance, 1 unknown to Ironic (unknown)",
		},
		"of any class": {ironic.AllocationSpec{CandidateNodes: []string{"fits"}}, "1 of 1 candidate matches"},
		"its own node": {
			ironic.AllocationSpec{
				UUID: "other-instance", ResourceClass: "baremetal", Traits: []string{"CUSTOM_SSD"},
				CandidateNodes: []string{"taken"},
			},
			"0 of 1 candidate: 1 without CUSTOM_SSD",
		},
		"a node that runs already": {
			ironic.AllocationSpec{Node: "fits"}, "0 of 1 candidate: 1 not active (1 available)",
		},
		"unknown class": {ironic.AllocationSpec{ResourceClass: "gpu"}, "0 of 13 nodes: 13 other class"},
	} {
		if got := countMismatches(tc.spec, all).String(); got != tc.want {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
	if got := countMismatches(ironic.AllocationSpec{ResourceClass: "gpu"}, nil).String(); got != "0 of 0 nodes" {
		t.Errorf("an empty Ironic: %s", got)
	}
}

func TestCensus_countsEachNodeOnce(t *testing.T) {
	t.Parallel()
	all := site()
	for owner := range slices.Values([]string{"", "team-a", "team-z"}) {
		c := countMismatches(ironic.AllocationSpec{ResourceClass: "baremetal", Owner: owner, Traits: []string{"CUSTOM_NVME"}}, all)
		sum := c.Matching + c.OtherClass + c.Unavailable + c.Maintenance + c.Reserved + c.NoPower + c.Own
		for _, n := range c.Traits {
			sum += n
		}
		if sum != len(all) || c.Total != len(all) {
			t.Errorf("owner %q: %d counted of %d: %+v", owner, sum, len(all), c)
		}
	}
}

func TestCensus_advice(t *testing.T) {
	t.Parallel()
	for want, census := range map[string]Census{
		"Apply again":                  {Total: 3, Matching: 1},
		"set power_state":              {Total: 3, NoPower: 1},
		"Make more nodes available":    {Total: 3, OtherClass: 3},
		"target_state = \"available\"": {},
		"maintenance = false on their": {Total: 2, Maintenance: 1, OtherClass: 1},
		"that reserves a node":         {Total: 1, Reserved: 1},
		"Set owner to the owner":       {Total: 1, Own: 1},
		"a node that is active":        {Total: 1, Unavailable: 1, Backfill: true},
	} {
		got := (&NoMatch{Census: census}).advice()
		if !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", census, got, want)
		}
		if left := census.Maintenance + census.Reserved + census.Own; (left > 0 || census.Backfill) &&
			strings.Contains(got, "target_state") {
			t.Errorf("%+v: %q, although its nodes are available", census, got)
		}
	}
	both := (&NoMatch{Census: Census{Total: 2, Maintenance: 1, Unavailable: 1, States: map[string]int{"active": 1}}}).advice()
	if !strings.Contains(both, "maintenance = false") || !strings.Contains(both, "target_state") {
		t.Errorf("the advice is %q", both)
	}
}

func TestGaps_nameWhatNoNodeHas(t *testing.T) {
	t.Parallel()
	all := map[string]*ironic.Node{
		"1": {UUID: "1", Name: "rack1-01", ResourceClass: "baremetal", Traits: []string{"CUSTOM_NVME"}},
		"2": {UUID: "2", Name: "rack1-02", ResourceClass: "baremetal"},
		"3": {UUID: "3", Name: "rack1-03", ResourceClass: "gpu"},
	}
	spec := ironic.AllocationSpec{
		ResourceClass: "storage", Traits: []string{"custom_nvme", "CUSTOM_NVME"},
		CandidateNodes: []string{"rack1-01", "2", "rak1-03", "elsewhere"},
	}
	got := (&NoMatch{Request: Request{AllocationSpec: spec}, gaps: expect.GapsOf(spec, all)}).advice()
	for _, want := range []string{
		"Ironic knows no node rak1-03; similar: rack1-03, rack1-01, rack1-02.", "Ironic knows no node elsewhere. ",
		`No node has the class "storage". The classes of the nodes: baremetal (2), gpu (1).`,
		"No node has the trait custom_nvme; similar: CUSTOM_NVME.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the advice is %q, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "trait CUSTOM_NVME;") || strings.Contains(got, "node 2") {
		t.Errorf("the advice names what nodes have: %q", got)
	}
}
