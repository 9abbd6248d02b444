package fakeironic

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// allocate finds a node for an allocation, as the conductor does right after the POST.
func (s *Server) allocate(a *allocation) {
	if a.state != allocating || s.findAllocation(a.uuid) != a {
		return
	}
	suitable, reason := s.suitableNodes(a)
	if reason != "" {
		s.failAllocation(a, reason)
		return
	}
	rand.Shuffle(len(suitable), func(i, j int) { suitable[i], suitable[j] = suitable[j], suitable[i] })
	for i, n := range suitable {
		if n.str("name") == a.name && a.name != "" && s.maxMinor() >= 79 {
			suitable[0], suitable[i] = suitable[i], suitable[0]
		}
	}
	for _, n := range suitable {
		if n.locked() == nil {
			s.reserve(a, n)
			return
		}
	}
	s.failAllocation(a, fmt.Sprintf("could not reserve any of %d suitable nodes", len(suitable)))
}

// suitableNodes are the nodes that an allocation can have, or the reason why there is none. Like Ironic's query it skips
// nodes whose power state is not known.
func (s *Server) suitableNodes(a *allocation) (suitable []*node, reason string) {
	var ofClass []*node
	for _, n := range s.nodes {
		free := n.state() == available && n.str("power_state") != "" && !n.flag("maintenance") && n.str("instance_uuid") == "" &&
			n.str("parent_node") == ""
		owned := a.owner == "" || n.str("owner") == a.owner || n.str("lessee") == a.owner
		wanted := len(a.candidates) == 0 || contains(a.candidates, n.str("uuid"))
		if free && owned && wanted && n.str("resource_class") == a.class {
			ofClass = append(ofClass, n)
		}
	}
	if len(ofClass) == 0 && len(a.candidates) > 0 {
		return nil, fmt.Sprintf("none of the requested nodes are available and match the resource class %s.", a.class)
	}
	if len(ofClass) == 0 {
		return nil, fmt.Sprintf("no available nodes match the resource class %s.", a.class)
	}
	for _, n := range ofClass {
		if hasAll(n.traits(), a.traits) {
			suitable = append(suitable, n)
		}
	}
	if len(suitable) == 0 {
		return nil, fmt.Sprintf("no suitable nodes have the requested traits %s.", strings.Join(a.traits, ", "))
	}
	return suitable, ""
}

func hasAll(list, wanted []string) bool {
	for _, item := range wanted {
		if !contains(list, item) {
			return false
		}
	}
	return true
}

// reserve gives the node to the allocation.
func (s *Server) reserve(a *allocation, n *node) {
	a.node, a.state, a.lastError, a.updatedAt = n, allocated, "", timestamp(s.now)
	n.put("instance_uuid", a.uuid)
	n.put("allocation_uuid", a.uuid)
	info := object(clone(n.fields["instance_info"]))
	info["traits"] = clone(a.traits)
	n.put("instance_info", info)
	n.put("updated_at", timestamp(s.now))
}

func (s *Server) failAllocation(a *allocation, reason string) {
	a.state, a.updatedAt = allocationError, timestamp(s.now)
	a.lastError = fmt.Sprintf("Failed to process allocation %s: %s", a.uuid, reason)
}

// backfill makes an allocation for a node that is active already. An allocation that does not fit stays behind in state
// error, as in Ironic.
func (s *Server) backfill(a *allocation, n *node) error {
	refuse := func(reason string) error {
		text := fmt.Sprintf("Cannot backfill an allocation for node %s: %s", n.str("uuid"), reason)
		s.failAllocation(a, text)
		return fault(http.StatusInternalServerError, "%s", a.lastError)
	}
	switch instance := n.str("instance_uuid"); {
	case n.state() != active:
		return refuse(fmt.Sprintf("Node must be in the \"active\" state, but the current state is \"%s\".", n.state()))
	case instance != "" && instance != a.uuid:
		return refuse(fmt.Sprintf("Node is associated with instance %s, the allocation has UUID %s.", instance, a.uuid))
	case a.class != n.str("resource_class"):
		return refuse(fmt.Sprintf("Resource class %s does not match the expected resource class %s.", n.str("resource_class"), a.class))
	case !hasAll(n.traits(), a.traits):
		return refuse("The node does not have the requested traits " + strings.Join(a.traits, ", ") + ".")
	case len(a.candidates) > 0 && !contains(a.candidates, n.str("uuid")):
		return refuse("The node is not in the list of candidate nodes.")
	}
	s.reserve(a, n)
	return nil
}
