package allocate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// KindNoMatch is the kind of an error which says that no node matches an allocation.
const KindNoMatch failure.Kind = "no match"

// NoMatch is what an error of KindNoMatch knows: why no node matches.
type NoMatch struct {
	Request   Request
	LastError string // the allocation's last_error in Ironic
	Left      bool   // the failed allocation could not be deleted
	Census    Census

	gaps  []expect.Gap
	asked time.Time // when the list of the census was requested
}

// Err returns the error, which counts the nodes by the first requirement that each one misses.
func (e *NoMatch) Err() error {
	return &failure.Error{
		Kind: KindNoMatch, About: e, Fact: fmt.Sprintf("no node matches%s: %s", e.Request.waited(), e.Census),
		Words: e.LastError, Advice: e.advice(),
	}
}

func (e *NoMatch) advice() string {
	what := e.Request.what()
	dependsOn := "If the same configuration makes the hosts, add depends_on with those metal_host resources to the " + what +
		", so that it waits for them. "
	coming, states := e.Census.coming()
	switch {
	case len(e.gaps) > 0:
		var lines []string
		for _, g := range e.gaps {
			lines = append(lines, g.String())
		}
		return strings.Join(lines, " ") + " Correct the demand, or give a node what it lacks. " + strings.TrimSpace(dependsOn)
	case e.Census.Matching > 0:
		return "Other allocations took the matching nodes in the meantime. Apply again."
	case e.Census.Unread > 0:
		return fmt.Sprintf("The provider reads at most %d inventories a run. Demand more that Ironic matches (resource_class, traits), "+
			"or set properties of the nodes.", inventoriesOfRun)
	case coming > 0:
		return fmt.Sprintf("Nodes of this class may become available soon (%s). ", counts(states)) + dependsOn +
			"If others make them, set wait_for_capacity to the time that the " + what + " may wait."
	case e.Census.NoPower > 0:
		return "Ironic allocates only nodes whose power state it knows: set power_state on their metal_host, or check their BMC."
	}
	return e.Census.remedy() + dependsOn + "To wait for nodes that others release or make, set wait_for_capacity."
}

// remedy says what can make nodes match, in sentences with a space at the end.
func (c Census) remedy() string {
	if c.Backfill {
		return "Only a node that is active, without maintenance and without a reservation, can be allocated as backfill_node. "
	}
	text := ""
	for _, r := range []struct {
		nodes    int
		sentence string
	}{
		{c.Maintenance, "Take nodes out of maintenance when they work again (maintenance = false on their metal_host). "},
		{c.Reserved, "Destroy the metal_allocation or metal_deployment that reserves a node. "},
		{c.Own, "Set owner to the owner or lessee of the nodes. "},
	} {
		if r.nodes > 0 {
			text += r.sentence
		}
	}
	if text != "" && c.Unavailable == 0 && len(c.Traits) == 0 && len(c.Lacks) == 0 {
		return text
	}
	return text + "Make more nodes available in this class (metal_host target_state = \"available\"), or require less. "
}

// noMatchOf returns the NoMatch of an error of KindNoMatch; nil for other errors.
func noMatchOf(err error) *NoMatch { return failure.AboutOf[*NoMatch](err, KindNoMatch) }

func noMatch(site *machine.Site, r *Request, census Census) *NoMatch {
	all, _ := stockOf(site).list()
	return &NoMatch{Request: *r, Census: census, gaps: expect.GapsOf(r.AllocationSpec, all)}
}

// KindShortGroup is the kind of an error which says that too few nodes match a group. Nothing is reserved for it. About is the *NoMatch of
// a member.
const KindShortGroup failure.Kind = "short group"

// shortGroup returns such an error: need members need a node, free nodes match, and the group could use so many of them.
func shortGroup(none *NoMatch, spread Spread, need, free, usable int) *failure.Error {
	const nothing = "Nothing is reserved for the group. "
	fact := fmt.Sprintf("%s%s, and %d can have one: %s", needs(need), none.Request.waited(), usable, none.Census)
	if usable < free {
		return &failure.Error{
			Kind: KindShortGroup, About: none, Fact: fact + fmt.Sprintf(". max_per_domain = %d excludes %d of the nodes that match",
				spread.Max, free-usable),
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
		Advice: failure.AdviseCreateFirst("a group of the same name") + "\n\nNames of allocations are unique in Ironic. Choose another " +
			"name for the group, or import the group that has these allocations. If the allocation is not needed: metal release " + id,
	}
}

func memberInUse(node *ironic.Node) error {
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("something is still deployed on node %s (state %q), so the member stays in the group",
			ironic.NodeLabel(node), node.ProvisionState),
		Advice: "Destroy the metal_deployment of the member: with for_each over members, the same apply does that. If undeploying needs " +
			"longer, raise timeouts.update.",
	}
}

// stillDeployed says that something is deployed on the node that a member is to give up.
func stillDeployed(m *GroupMember, node *ironic.Node) error {
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("member %s cannot move: something is deployed on its node %s (state %q). Nothing of the group "+
			"was changed", m.Name, ironic.NodeLabel(node), node.ProvisionState),
		Advice: "The apply destroys the deployment of a member before the member moves only if the metal_deployment is in this state, " +
			"refers to the member, and has neither create_before_destroy nor on_destroy = \"forget\". Destroy what runs on the node, or " +
			"remove the member from replace_members.",
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
		name = cmp.Or(name, "none")
		parts = append(parts, fmt.Sprintf("%s (%d)", name, domains[domain]))
	}
	return fmt.Sprintf("With max_per_domain = %d, the nodes of the class %q can hold %d members, and the group has %d. Values of %s, "+
		"with the number of nodes: %s.",
		g.Spread.Max, g.ResourceClass, most, g.Size, g.Spread.By, strings.Join(parts, ", "))
}
