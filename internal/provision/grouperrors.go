package provision

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ErrNoCandidates says that no node may be reserved.
var ErrNoCandidates = errors.New("there are no candidates")

// ShortGroupError says that too few nodes match a group. Nothing is reserved for it.
type ShortGroupError struct {
	none               *NoMatchError
	spread             Spread
	need, free, usable int // members that need a node, free nodes that match, and how many of them the group could use
}

// Error counts the nodes.
func (e *ShortGroupError) Error() string {
	text := fmt.Sprintf("%s%s, and %d can have one: %s", needs(e.need), e.none.Request.waited(), e.usable, e.none.Census)
	if e.usable < e.free {
		text += fmt.Sprintf(". max_per_domain = %d excludes %d of the nodes that match", e.spread.Max, e.free-e.usable)
	}
	return text
}

// needs says how many members need a node.
func needs(n int) string {
	if n == 1 {
		return "1 member of the group needs a node"
	}
	return fmt.Sprintf("%d members of the group need a node", n)
}

func (e *ShortGroupError) advice() string {
	const nothing = "Nothing is reserved for the group. "
	if e.usable < e.free {
		return nothing + fmt.Sprintf("Raise max_per_domain, or make nodes with other values of %s available.", e.spread.By)
	}
	few := *e.none
	few.Census.Matching = 0 // the nodes that match are too few, and no other allocation has taken them
	return nothing + few.Advice()
}

// NameTakenError says that an allocation with the name of a new member exists, which is not of this group.
type NameTakenError struct{ Name, ID string }

// Error names the allocation.
func (e *NameTakenError) Error() string {
	return fmt.Sprintf("an allocation with the name %s exists already (%s)", e.Name, e.ID)
}

func (e *NameTakenError) advice() string {
	return "Names of allocations are unique in Ironic. Choose another name for the group, or import the group that has these allocations. " +
		"If the allocation is not needed: baremetal allocation delete " + e.ID
}

// MemberInUseError says that something is still deployed on the node of a member that leaves its group.
type MemberInUseError struct {
	Node *ironic.Node // as last seen
}

// Error names the node and its state.
func (e *MemberInUseError) Error() string {
	return fmt.Sprintf("something is still deployed on node %s (state %q), so the member stays in the group", ironic.NodeLabel(e.Node), e.Node.ProvisionState)
}

func (e *MemberInUseError) advice() string {
	return "Destroy the metal_deployment of the member: with for_each over members, the same apply does that. If undeploying needs longer, raise timeouts.update."
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
