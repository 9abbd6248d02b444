package conductor

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Allocation is a request for a node and then its reservation.
type Allocation struct {
	Uuid, Name, Owner, Class string
	State                    allocationState
	LastError                string
	Candidates, Traits       []string
	Extra                    map[string]any
	Node                     *Node
	CreatedAt, UpdatedAt     string
}

// allocationState is the state of an allocation.
type allocationState string

// The states of allocations.
const (
	Allocating      allocationState = "allocating"
	Allocated       allocationState = "active"
	AllocationError allocationState = "error"
)

// FindAllocation returns the allocation with that UUID or name, or nil.
func (c *Conductor) FindAllocation(ref string) *Allocation {
	for _, a := range c.Allocations {
		if a.Uuid == ref || a.Name == ref && ref != "" {
			return a
		}
	}
	return nil
}

// AllocationOf returns the allocation that reserves the node, or nil.
func (c *Conductor) AllocationOf(n *Node) *Allocation {
	if uuid := n.Str("allocation_uuid"); uuid != "" {
		return c.FindAllocation(uuid)
	}
	return nil
}

// dropAllocation deletes the allocation of a node if it has one.
func (c *Conductor) dropAllocation(n *Node) {
	if a := c.AllocationOf(n); a != nil {
		c.removeAllocation(a)
	}
}

// removeAllocation deletes an allocation and frees its node.
func (c *Conductor) removeAllocation(a *Allocation) {
	if a.Node != nil && a.Node.Str("allocation_uuid") == a.Uuid {
		a.Node.Put("allocation_uuid", nil)
		a.Node.Put("instance_uuid", nil)
	}
	c.Allocations = slices.DeleteFunc(c.Allocations, func(other *Allocation) bool { return other == a })
}

// DeleteAllocation deletes an allocation, or refuses to while its node is in use.
func (c *Conductor) DeleteAllocation(a *Allocation) error {
	if n := a.Node; n != nil && !n.Flag("maintenance") {
		why := ""
		switch {
		case n.State() == Active:
			why = "the node is active (and maintenance mode is off)"
		case n.Str("target_provision_state") != "" && !n.State().PatchableInTransition():
			why = "the node is in state " + n.Str("provision_state") + " where updates are not allowed (and maintenance mode is off)"
		}
		if why != "" {
			return api.Fault(http.StatusConflict, "Cannot remove allocation %s for node %s, because %s", a.Uuid, n.Str("uuid"), why)
		}
	}
	if a.Node != nil {
		if err := a.Node.Locked(); err != nil {
			return err
		}
	}
	c.removeAllocation(a)
	return nil
}

// Allocate finds a node for an allocation. The conductor does this after the answer to the POST.
func (c *Conductor) Allocate(a *Allocation) {
	if a.State != Allocating || c.FindAllocation(a.Uuid) != a {
		return
	}
	suitable, reason := c.suitableNodes(a)
	if reason != "" {
		c.failAllocation(a, reason)
		return
	}
	rand.Shuffle(len(suitable), func(i, j int) { suitable[i], suitable[j] = suitable[j], suitable[i] })
	for i, n := range suitable {
		if n.Str("name") == a.Name && a.Name != "" && c.MaxMinor >= 79 {
			suitable[0], suitable[i] = suitable[i], suitable[0]
		}
	}
	for _, n := range suitable {
		if n.Locked() == nil {
			c.reserve(a, n)
			return
		}
	}
	c.failAllocation(a, fmt.Sprintf("could not reserve any of %d suitable nodes", len(suitable)))
}

// suitableNodes returns the nodes that match an allocation, or why none does. Like Ironic's query it skips nodes without a
// power state.
func (c *Conductor) suitableNodes(a *Allocation) (suitable []*Node, reason string) {
	var ofClass []*Node
	for _, n := range c.Nodes {
		free := n.State() == Available && n.Str("power_state") != "" && !n.Flag("maintenance") && n.Str("instance_uuid") == "" &&
			n.Str("parent_node") == ""
		owned := a.Owner == "" || n.Str("owner") == a.Owner || n.Str("lessee") == a.Owner
		wanted := len(a.Candidates) == 0 || slices.Contains(a.Candidates, n.Str("uuid"))
		if free && owned && wanted && n.Str("resource_class") == a.Class {
			ofClass = append(ofClass, n)
		}
	}
	if len(ofClass) == 0 && len(a.Candidates) > 0 {
		return nil, fmt.Sprintf("none of the requested nodes are available and match the resource class %s.", a.Class)
	}
	if len(ofClass) == 0 {
		return nil, fmt.Sprintf("no available nodes match the resource class %s.", a.Class)
	}
	for _, n := range ofClass {
		if hasAll(n.Traits(), a.Traits) {
			suitable = append(suitable, n)
		}
	}
	if len(suitable) == 0 {
		return nil, fmt.Sprintf("no suitable nodes have the requested traits %s.", strings.Join(a.Traits, ", "))
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
func (c *Conductor) reserve(a *Allocation, n *Node) {
	a.Node, a.State, a.LastError, a.UpdatedAt = n, Allocated, "", api.Timestamp(c.Now)
	n.Put("instance_uuid", a.Uuid)
	n.Put("allocation_uuid", a.Uuid)
	info := api.Object(api.Clone(n.Fields["instance_info"]))
	info["traits"] = api.Clone(a.Traits)
	n.Put("instance_info", info)
	n.Put("updated_at", api.Timestamp(c.Now))
}

func (c *Conductor) failAllocation(a *Allocation, reason string) {
	a.State, a.UpdatedAt = AllocationError, api.Timestamp(c.Now)
	a.LastError = fmt.Sprintf("Failed to process allocation %s: %s", a.Uuid, reason)
}

// Backfill reserves a node that is already active. As in Ironic, an allocation that does not match stays in state error.
func (c *Conductor) Backfill(a *Allocation, n *Node) error {
	refuse := func(reason string) error {
		text := fmt.Sprintf("Cannot backfill an allocation for node %s: %s", n.Str("uuid"), reason)
		c.failAllocation(a, text)
		return api.Fault(http.StatusInternalServerError, "%s", a.LastError)
	}
	var faults []string
	if n.State() != Active {
		faults = append(faults, fmt.Sprintf("Node must be in the \"active\" state, but the current state is \"%s\"", n.State()))
	}
	if a.Class != n.Str("resource_class") {
		faults = append(faults, fmt.Sprintf("Resource class %s does not match the requested resource class %s",
			api.PyText(n.Fields["resource_class"]), a.Class))
	}
	if !hasAll(n.Traits(), a.Traits) {
		faults = append(faults, fmt.Sprintf("List of traits %s does not match the requested traits %s", api.PyRepr(n.Fields["traits"]),
			api.PyRepr(api.Clone(a.Traits))))
	}
	if len(a.Candidates) > 0 && !slices.Contains(a.Candidates, n.Str("uuid")) {
		faults = append(faults, "Candidate nodes must be empty or contain the target node, but got "+api.PyRepr(api.Clone(a.Candidates)))
	}
	switch instance := n.Str("instance_uuid"); {
	case len(faults) > 0:
		return refuse(strings.Join(faults, "; ") + ".")
	case instance != "" && instance != a.Uuid:
		return refuse(fmt.Sprintf("Node is associated with instance %s, the allocation has UUID %s.", instance, a.Uuid))
	}
	c.reserve(a, n)
	return nil
}
