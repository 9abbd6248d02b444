package fakeironic

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// allocation is a request for a node and then its reservation.
type allocation struct {
	uuid, name, owner, class string
	state                    allocationState
	lastError                string
	candidates, traits       []string
	extra                    map[string]any
	node                     *node
	createdAt, updatedAt     string
}

// allocationState is the state of an allocation.
type allocationState string

// The states of allocations.
const (
	allocating      allocationState = "allocating"
	allocated       allocationState = "active"
	allocationError allocationState = "error"
)

var allocationFields = []string{
	"uuid", "created_at", "updated_at", "candidate_nodes", "extra", "last_error", "name", "owner", "resource_class", "state", "traits", "node_uuid",
}

// showAllocation returns the allocation as the API shows it, with the given fields; nil means all.
func showAllocation(c *call, a *allocation, fields []string) ordered {
	nodeUUID := ""
	if a.node != nil {
		nodeUUID = a.node.str("uuid")
	}
	values := map[string]any{
		"uuid": a.uuid, "created_at": a.createdAt, "updated_at": orNull(a.updatedAt), "candidate_nodes": a.candidates, "extra": a.extra,
		"last_error": orNull(a.lastError), "name": orNull(a.name), "owner": orNull(a.owner), "resource_class": orNull(a.class),
		"state": string(a.state), "traits": a.traits, "node_uuid": orNull(nodeUUID),
	}
	var out ordered
	for _, name := range allocationFields {
		if name == "owner" && c.minor < 60 || fields != nil && !slices.Contains(fields, name) {
			continue
		}
		out = append(out, member{name, values[name]})
	}
	return append(out, member{"links", c.links("allocations/" + a.uuid)})
}

// findAllocation returns the allocation with that UUID or name, or nil.
func (s *Server) findAllocation(ref string) *allocation {
	for _, a := range s.allocations {
		if a.uuid == ref || a.name == ref && ref != "" {
			return a
		}
	}
	return nil
}

// allocationOf returns the allocation that reserves the node, or nil.
func (s *Server) allocationOf(n *node) *allocation {
	if uuid := n.str("allocation_uuid"); uuid != "" {
		return s.findAllocation(uuid)
	}
	return nil
}

// dropAllocation deletes the allocation of a node if it has one.
func (s *Server) dropAllocation(n *node) {
	if a := s.allocationOf(n); a != nil {
		s.removeAllocation(a)
	}
}

// removeAllocation deletes an allocation and frees its node.
func (s *Server) removeAllocation(a *allocation) {
	if a.node != nil && a.node.str("allocation_uuid") == a.uuid {
		a.node.put("allocation_uuid", nil)
		a.node.put("instance_uuid", nil)
	}
	s.allocations = slices.DeleteFunc(s.allocations, func(other *allocation) bool { return other == a })
}

// deleteAllocation deletes an allocation, or refuses to while its node is in use.
func (s *Server) deleteAllocation(a *allocation) error {
	if n := a.node; n != nil && !n.flag("maintenance") {
		why := ""
		switch {
		case n.state() == active:
			why = "the node is active (and maintenance mode is off)"
		case n.str("target_provision_state") != "" && !n.state().patchableInTransition():
			why = "the node is in state " + n.str("provision_state") + " where updates are not allowed (and maintenance mode is off)"
		}
		if why != "" {
			return fault(http.StatusConflict, "Cannot remove allocation %s for node %s, because %s", a.uuid, n.str("uuid"), why)
		}
	}
	if a.node != nil {
		if err := a.node.locked(); err != nil {
			return err
		}
	}
	s.removeAllocation(a)
	return nil
}

// allocate finds a node for an allocation. The conductor does this after the answer to the POST.
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

// suitableNodes returns the nodes that match an allocation, or why none does. Like Ironic's query it skips nodes without a
// power state.
func (s *Server) suitableNodes(a *allocation) (suitable []*node, reason string) {
	var ofClass []*node
	for _, n := range s.nodes {
		free := n.state() == available && n.str("power_state") != "" && !n.flag("maintenance") && n.str("instance_uuid") == "" &&
			n.str("parent_node") == ""
		owned := a.owner == "" || n.str("owner") == a.owner || n.str("lessee") == a.owner
		wanted := len(a.candidates) == 0 || slices.Contains(a.candidates, n.str("uuid"))
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
		if !slices.Contains(list, item) {
			return false
		}
	}
	return true
}

// reserve reserves the node for the allocation.
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

// backfill reserves a node that is already active. As in Ironic, an allocation that does not match stays in state error.
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
	case len(a.candidates) > 0 && !slices.Contains(a.candidates, n.str("uuid")):
		return refuse("The node is not in the list of candidate nodes.")
	}
	s.reserve(a, n)
	return nil
}
