package ironic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Census counts nodes by the first reason for which each does not fit an allocation.
type Census struct {
	Total, Matching                                              int
	OtherClass, Unavailable, Maintenance, Reserved, NoPower, Own int
	States                                                       map[string]int // of the unavailable ones
	Traits                                                       map[string]int // missing ones
	Candidates                                                   bool           // only these are counted
	Backfill                                                     bool           // of a node that is active already
	Missing                                                      []string       // candidates that no node is, by name or UUID
}

// Census counts the nodes that an allocation could be given now, from a list that is a minute old at most: many plans
// share it. What a spec leaves empty is not demanded. With Node it counts that node, which has to be active.
// A node that the allocation has already counts as free.
func (c *Client) Census(ctx context.Context, spec AllocationSpec) (Census, error) {
	all, err := c.nodes.whole(ctx)
	if err != nil {
		return Census{}, err
	}
	return countMismatches(spec, all), nil
}

// Applying reports whether this run has changed a node: then it is an apply, in which Terraform plans once more what only
// became known meanwhile, and may not plan otherwise than before.
func (c *Client) Applying() bool { return c.nodes.wrote() }

// countMismatches applies Ironic's own rules (reference ironic-facts.md 5.1) to all nodes.
func countMismatches(spec AllocationSpec, all map[string]*Node) Census {
	state, candidates := nodes.Available, spec.CandidateNodes
	if spec.Node != "" {
		state, candidates = nodes.Active, []string{spec.Node}
	}
	census := Census{States: map[string]int{}, Traits: map[string]int{}, Candidates: len(candidates) > 0, Backfill: spec.Node != ""}
	census.Missing = slices.Clone(candidates)
	for _, node := range all {
		is := func(candidate string) bool { return candidate == node.UUID || candidate == node.Name }
		if census.Candidates && !slices.ContainsFunc(candidates, is) {
			continue
		}
		census.Missing = slices.DeleteFunc(census.Missing, is)
		census.Total++
		missing := missingTrait(spec.Traits, node.Traits)
		own := spec.UUID != "" && node.InstanceUUID == spec.UUID // it would be free
		switch {
		case spec.ResourceClass != "" && node.ResourceClass != spec.ResourceClass:
			census.OtherClass++
		case !own && State(node.ProvisionState) != state:
			census.Unavailable++
			census.States[node.ProvisionState]++
		case node.Maintenance:
			census.Maintenance++
		case !own && node.InstanceUUID != "":
			census.Reserved++
		case node.PowerState == "":
			census.NoPower++
		case spec.Owner != "" && node.Owner != spec.Owner && node.Lessee != spec.Owner:
			census.Own++
		case missing != "":
			census.Traits[missing]++
		default:
			census.Matching++
		}
	}
	census.Total += len(census.Missing)
	return census
}

func missingTrait(wanted, have []string) string {
	for _, trait := range wanted {
		if !slices.Contains(have, trait) {
			return trait
		}
	}
	return ""
}

// String is such as "0 of 42 nodes: 12 other class, 20 not available (15 active, 5 manageable), 10 without CUSTOM_NVME".
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
	add(len(c.Missing), "unknown to Ironic ("+strings.Join(c.Missing, ", ")+")")
	what := "nodes"
	switch {
	case c.Candidates && c.Total == 1:
		what = "candidate"
	case c.Candidates:
		what = "candidates"
	case c.Total == 1:
		what = "node"
	}
	text := fmt.Sprintf("%d of %d %s", c.Matching, c.Total, what)
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}

// counts is such as "15 active, 5 manageable": the most first.
func counts(m map[string]int) string {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return m[b] - m[a] })
	var parts []string
	for _, key := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", m[key], key))
	}
	return strings.Join(parts, ", ")
}
