package allocate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KindShortGroup is the kind of an error which says that too few nodes match a group. Nothing is reserved for it. About is the *NoMatch of a member.
const KindShortGroup failure.Kind = "short group"

// shortGroup returns such an error: need members need a node, free nodes match, and the group could use so many of them.
func shortGroup(none *NoMatch, spread Spread, need, free, usable int) *failure.Error {
	const nothing = "Nothing is reserved for the group. "
	fact := fmt.Sprintf("%s%s, and %d can have one: %s", needs(need), none.Request.waited(), usable, none.Census)
	if usable < free {
		return &failure.Error{
			Kind: KindShortGroup, About: none, Fact: fact + fmt.Sprintf(". max_per_domain = %d excludes %d of the nodes that match", spread.Max, free-usable),
			Advice: nothing + fmt.Sprintf("Raise max_per_domain, or make nodes with other values of %s available.", spread.By),
		}
	}
	few := *none
	few.Census.Matching = 0 // the nodes that match are too few, and no other allocation has taken them
	return &failure.Error{Kind: KindShortGroup, About: none, Fact: fact, Advice: nothing + few.advice()}
}

// needs says how many members need a node.
func needs(n int) string {
	if n == 1 {
		return "1 member of the group needs a node"
	}
	return fmt.Sprintf("%d members of the group need a node", n)
}

// nameTaken says that an allocation with the name of a new member exists, which is not of this group.
func nameTaken(name, id string) error {
	return &failure.Error{
		Fact: fmt.Sprintf("an allocation with the name %s exists already (%s)", name, id),
		Advice: "Names of allocations are unique in Ironic. Choose another name for the group, or import the group that has these allocations. " +
			"If the allocation is not needed: baremetal allocation delete " + id,
	}
}

// memberInUse says that something is still deployed on the node of a member that leaves its group.
func memberInUse(node *ironic.Node) error {
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("something is still deployed on node %s (state %q), so the member stays in the group", ironic.NodeLabel(node), node.ProvisionState),
		Advice: "Destroy the metal_deployment of the member: with for_each over members, the same apply does that. If undeploying needs longer, raise timeouts.update.",
	}
}

// cannotHold explains why no group of this size can be spread over the nodes of a list, available or not; "" if one can, or if there
// are too few nodes anyway.
func (g *Group) cannotHold(all map[string]*ironic.Node) string {
	if g.Spread.Max == 0 {
		return ""
	}
	var ofClass []*ironic.Node
	for _, node := range all {
		if node.ResourceClass == g.ResourceClass {
			ofClass = append(ofClass, node)
		}
	}
	most, domains := g.Spread.mostMembers(ofClass)
	if most >= g.Size || len(ofClass) < g.Size {
		return ""
	}
	var parts []string
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		name := domain
		if name == "" {
			name = "none"
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", name, domains[domain]))
	}
	return fmt.Sprintf("With max_per_domain = %d, the nodes of the class %q can hold %d members, and the group has %d. Values of %s, with the number of nodes: %s.",
		g.Spread.Max, g.ResourceClass, most, g.Size, g.Spread.By, strings.Join(parts, ", "))
}
