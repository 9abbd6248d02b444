package expect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// CandidatesOf returns the names and UUIDs of nodes in an allocation.
func CandidatesOf(spec ironic.AllocationSpec) []string {
	if spec.Node != "" {
		return []string{spec.Node}
	}
	return spec.CandidateNodes
}

// AttributeOf returns the attribute that restricts the choice of nodes most.
func AttributeOf(spec ironic.AllocationSpec) string {
	switch {
	case spec.Node != "":
		return "backfill_node"
	case len(spec.CandidateNodes) > 0:
		return "candidate_nodes"
	}
	return "resource_class"
}

// Gap is something that an allocation demands and that no node of the site has.
type Gap struct {
	Attribute, Value string
	have             map[string]int // how many nodes have each of the other values
}

// GapsOf returns what an allocation demands and no node has: names, the class, traits.
func GapsOf(spec ironic.AllocationSpec, all map[string]*ironic.Node) []Gap {
	names, uuids, classes, traits := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, node := range all {
		names[node.Name]++
		uuids[node.UUID]++
		classes[node.ResourceClass]++
		for _, trait := range node.Traits {
			traits[trait]++
		}
	}
	var gaps []Gap
	for _, ref := range CandidatesOf(spec) {
		if names[ref] == 0 && uuids[ref] == 0 {
			gaps = append(gaps, Gap{AttributeOf(spec), ref, names})
		}
	}
	if spec.ResourceClass != "" && classes[spec.ResourceClass] == 0 {
		gaps = append(gaps, Gap{"resource_class", spec.ResourceClass, classes})
	}
	for _, trait := range spec.Traits {
		if traits[trait] == 0 {
			gaps = append(gaps, Gap{"traits", trait, traits})
		}
	}
	return gaps
}

// IsNode reports whether the value is the name or UUID of a node.
func (g Gap) IsNode() bool { return g.Attribute == "candidate_nodes" || g.Attribute == "backfill_node" }

// Summary is what all gaps of a kind have in common, so that Terraform folds their warnings.
func (g Gap) Summary() string {
	switch g.Attribute {
	case "resource_class":
		return "No node has this class"
	case "traits":
		return "No node has this trait"
	}
	return "Ironic does not know this node"
}

// String says what is missing, and which values are similar or exist.
func (g Gap) String() string {
	what, known := "Ironic knows no node "+g.Value, ""
	switch g.Attribute {
	case "resource_class":
		what, known = fmt.Sprintf("No node has the class %q", g.Value), "The classes of the nodes: "
	case "traits":
		what, known = "No node has the trait "+g.Value, "The traits of the nodes: "
	}
	if like := Similar(g.Value, g.have); len(like) > 0 {
		return fmt.Sprintf("%s; similar: %s.", what, strings.Join(like, ", "))
	}
	if list := commonest(g.have); known != "" && list != "" {
		return fmt.Sprintf("%s. %s%s.", what, known, list)
	}
	return what + "."
}

const fewCommon = 10 // existing values that a message names

const (
	fewSimilar = 3 // similar values that a message names
	mostEdits  = 2 // edits that make one value out of a similar one
)

// Similar returns the values that may have been meant, the nearest first. Upper and lower case do not matter.
func Similar(value string, have map[string]int) []string {
	distance := func(other string) int { return edits(strings.ToLower(value), strings.ToLower(other)) }
	like := slices.DeleteFunc(slices.Sorted(maps.Keys(have)), func(other string) bool { return other == "" || distance(other) > mostEdits })
	slices.SortStableFunc(like, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	return like[:min(len(like), fewSimilar)]
}

// commonest lists the values that most nodes have, with the number of nodes.
func commonest(have map[string]int) string {
	values := slices.DeleteFunc(slices.Sorted(maps.Keys(have)), func(value string) bool { return value == "" })
	slices.SortStableFunc(values, func(a, b string) int { return have[b] - have[a] })
	var parts []string
	for _, value := range values[:min(len(values), fewCommon)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", value, have[value]))
	}
	if more := len(values) - fewCommon; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// MissingTraits returns a sentence for each trait that no node has. It returns none while there are no nodes, or if this plan creates
// or changes a host, which may get the trait.
func MissingTraits(ctx context.Context, site *machine.Site, traits []string) ([]string, error) {
	if len(traits) == 0 || site.Ironic.HasWritten() || ExpectedOf(site).any(func(ExpectedHost) bool { return true }) {
		return nil, nil
	}
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var sentences []string
	for _, g := range GapsOf(ironic.AllocationSpec{Traits: traits}, all) {
		sentences = append(sentences, g.String())
	}
	return sentences, nil
}
