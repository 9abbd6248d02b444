package allocate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Census counts the nodes that match an allocation, and the others by the first reason why each does not match.
type Census struct {
	Total, Matching                                              int
	OtherClass, Unavailable, Maintenance, Reserved, NoPower, Own int
	States                                                       map[string]int // of the unavailable nodes
	Traits                                                       map[string]int // missing traits
	Lacks                                                        map[string]int // reasons of the requirements, as the text shows them
	Unread                                                       int            // nodes that may match: their inventories were not read
	Candidates                                                   bool           // only candidate nodes are counted
	Partial                                                      bool           // the user may be unable to see some nodes of the site
	Backfill                                                     bool           // counts for a backfill, which needs an active node
	Missing                                                      []string       // candidates (name or UUID) that do not exist
}

// IsEmpty reports whether no node matches, and none may.
func (c Census) IsEmpty() bool { return c.Matching == 0 && c.Unread == 0 }

// TakeCensus counts the nodes that Ironic could allocate now, for a plan. It uses a list that is at most a minute old and is shared by many
// plans. Empty fields of the request require nothing. If Node is set, it counts that node only, which must be active. A node that
// the allocation already has counts as free.
func TakeCensus(ctx context.Context, site *machine.Site, r Request) (Census, error) {
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return Census{}, err
	}
	census, _, err := examine(ctx, site, r, all, inventoriesOfPlans)
	return census, err
}

// examine counts the nodes of a list that match a request, and returns those that no other creation of this run counts on. It reads the
// inventories of nodes that pass everything else, each once a run, until enough nodes match, or until the run has read the given number.
func examine(ctx context.Context, site *machine.Site, r Request, all map[string]*ironic.Node,
	most int,
) (census Census, free []*ironic.Node, err error) {
	stock := stockOf(site)
	census, fit, open := sift(r, all, site.Ironic.ServerNow())
	census.Partial = site.Ironic.Project() != ""
	free = stock.free(fit)
	for _, node := range inRunOrder(site, open) {
		if len(free) >= cmp.Or(r.enough, enoughNodes) {
			break
		}
		inventory, isRead, err := inventoryOf(ctx, site, node, most)
		if err != nil {
			return census, nil, err
		}
		if !isRead {
			continue // the inventories of others may be read already
		}
		census.Unread--
		switch v := r.Require.judge(node, inventory, site.Ironic.ServerNow()); {
		case v.lacks != "":
			census.Lacks[v.lacks]++
		case v.asks != "":
			census.Lacks[withoutData(v.asks)]++
		default:
			census.Matching++
			free = append(free, stock.free([]*ironic.Node{node})...)
		}
	}
	return census, free, nil
}

// sift applies Ironic's matching rules (reference/ironic.md#candidates-of-an-allocation) and the requirements to all nodes. It returns
// the nodes that match, and those whose inventory decides. now is by the clock of the site.
func sift(r Request, all map[string]*ironic.Node, now time.Time) (census Census, fit, open []*ironic.Node) {
	state, candidates := nodes.Available, expect.CandidatesOf(r.AllocationSpec)
	if r.Node != "" {
		state = nodes.Active
	}
	census = Census{
		States: map[string]int{}, Traits: map[string]int{}, Lacks: map[string]int{}, Candidates: len(candidates) > 0,
		Backfill: r.Node != "",
	}
	census.Missing = slices.Clone(candidates)
	for _, node := range all {
		is := func(candidate string) bool { return candidate == node.UUID || candidate == node.Name }
		if census.Candidates && !slices.ContainsFunc(candidates, is) {
			continue
		}
		census.Missing = slices.DeleteFunc(census.Missing, is)
		census.Total++
		missing := missingTrait(r.Traits, node.Traits)
		own := r.UUID != "" && node.InstanceUUID == r.UUID // its own node counts as free
		switch {
		case r.ResourceClass != "" && node.ResourceClass != r.ResourceClass:
			census.OtherClass++
		case !own && ironic.State(node.ProvisionState) != state:
			census.Unavailable++
			census.States[node.ProvisionState]++
		case node.Maintenance:
			census.Maintenance++
		case !own && node.InstanceUUID != "":
			census.Reserved++
		case node.PowerState == "":
			census.NoPower++
		case r.Owner != "" && node.Owner != r.Owner && node.Lessee != r.Owner:
			census.Own++
		case missing != "":
			census.Traits[missing]++
		case r.Require == nil:
			census.Matching++
			fit = append(fit, node)
		default:
			switch v := r.Require.judge(node, nil, now); {
			case v.lacks != "":
				census.Lacks[v.lacks]++
			case v.asks != "":
				census.Unread++
				open = append(open, node)
			default:
				census.Matching++
				fit = append(fit, node)
			}
		}
	}
	census.Total += len(census.Missing)
	return census, fit, open
}

func missingTrait(wanted, have []string) string {
	for _, trait := range wanted {
		if !slices.Contains(have, trait) {
			return trait
		}
	}
	return ""
}

// String returns a text like "0 of 42 nodes: 12 other class, 20 not available (15 active, 5 manageable), 10 without CUSTOM_NVME".
func (c Census) String() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(c.OtherClass, "other class")
	wanted := nodes.Available
	if c.Backfill {
		wanted = nodes.Active
	}
	add(c.Unavailable, fmt.Sprintf("not %s (%s)", wanted, counts(c.States)))
	add(c.Maintenance, "in maintenance")
	add(c.Reserved, "reserved already")
	add(c.NoPower, "with unknown power state")
	add(c.Own, "other owner")
	for _, trait := range slices.Sorted(maps.Keys(c.Traits)) {
		add(c.Traits[trait], "without "+trait)
	}
	for _, lack := range slices.Sorted(maps.Keys(c.Lacks)) {
		add(c.Lacks[lack], lack)
	}
	add(c.Unread, "not examined")
	add(len(c.Missing), "unknown to Ironic ("+strings.Join(c.Missing, ", ")+")")
	what := "node"
	if c.Candidates {
		what = "candidate"
	}
	if c.Total != 1 {
		what += "s"
	}
	if c.Partial && c.Matching == 0 {
		what += " that this user sees"
	}
	text := fmt.Sprintf("%d of %d %s", c.Matching, c.Total, what)
	switch {
	case c.Matching == 1:
		text += " matches"
	case c.Matching > 1:
		text += " match"
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}

// counts returns a text like "15 active, 5 manageable", in descending order.
func counts(m map[string]int) string {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return m[b] - m[a] })
	var parts []string
	for _, key := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", m[key], key))
	}
	return strings.Join(parts, ", ")
}

// coming returns how many nodes of the class become available, or are enrolled and may, by state.
func (c Census) coming() (total int, list map[string]int) {
	list = map[string]int{}
	for state, n := range c.States {
		if states.Has(ironic.State(state), states.Coming) {
			list[state] = n
			total += n
		}
	}
	return total, list
}
