package conductor

import (
	"net/http"
	"reflect"
	"slices"
	"sort"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// Node is a node in the database.
type Node struct {
	Order     int
	Fields    map[string]any // all attributes of the API by name, unmasked; timestamps are strings
	work      *operation     // operation in progress; nil if there is none
	Inventory map[string]any // inventory and plugin_data; nil if it was never inspected
	// Introspection is the data of ironic-inspector; nil if ironic-inspector has not discovered the node.
	Introspection map[string]any
	Machine       machine.Machine
	groupVIFs     map[string]string // VIFs by the UUIDs of port groups
	// failures, and since Ironic 39 the steps of operations, oldest first; Ironic keeps them when it clears last_error
	History  []api.Ordered
	Rendered map[View][]byte // JSON encoded since the last change
}

// View selects the form in which the API shows nodes.
type View struct {
	Minor  int
	Base   string
	Fields string // joined by commas; "" means all
	Hidden string // the fields that the policy hides, likewise
}

// AddNode stores a new node.
func (c *Conductor) AddNode(fields map[string]any) *Node {
	if c.NodeByUUID == nil {
		c.NodeByUUID, c.NodeByName, c.PortByMAC = map[string]*Node{}, map[string]*Node{}, map[string]*Port{}
	}
	c.sequence++
	n := &Node{Order: c.sequence, Fields: fields}
	c.Nodes = append(c.Nodes, n)
	c.NodeByUUID[n.Str("uuid")] = n
	if name := n.Str("name"); name != "" {
		c.NodeByName[name] = n
	}
	c.visits = append(c.visits, visit{time: c.Now, node: n.Str("uuid"), state: n.State()})
	return n
}

// SaveNode stores the patched fields.
func (c *Conductor) SaveNode(n *Node, patched map[string]any) {
	if n.Str("allocation_uuid") != "" && api.Text(patched["instance_uuid"]) == "" {
		c.dropAllocation(n)
		patched["allocation_uuid"] = nil
	}
	if n.Changed(patched, "name") {
		delete(c.NodeByName, n.Str("name"))
		if name := api.Text(patched["name"]); name != "" {
			c.NodeByName[name] = n
		}
	}
	if c.ParentNodeDefect {
		patched["parent_node"] = n.Str("uuid")
	}
	patched["updated_at"] = api.Timestamp(c.Now)
	detected := n.Changed(patched, "deploy_interface")
	n.Fields = patched
	n.Rendered = nil
	if detected { // the client's choice ends autodetect's
		n.unnote(keyOriginalDeploy)
	}
}

// keyOriginalDeploy is where the conductor keeps the deploy interface of a node whose field it has rewritten.
const keyOriginalDeploy = "original_deploy_interface"

// unnote removes a key of driver_internal_info.
func (n *Node) unnote(key string) {
	info := api.Object(api.Clone(n.Fields["driver_internal_info"]))
	delete(info, key)
	n.Put("driver_internal_info", info)
}

// RemoveNode removes a node with what belongs to it.
func (c *Conductor) RemoveNode(n *Node) {
	uuid := n.Str("uuid")
	c.dropAllocation(n)
	c.Ports = slices.DeleteFunc(c.Ports, func(p *Port) bool {
		if p.Node != n {
			return false
		}
		delete(c.PortByMAC, p.Address)
		return true
	})
	c.Nodes = slices.DeleteFunc(c.Nodes, func(other *Node) bool { return other == n })
	delete(c.NodeByUUID, uuid)
	delete(c.NodeByName, n.Str("name"))
	n.work = nil
	c.visits = append(c.visits, visit{time: c.Now, node: uuid})
}

// Set changes an attribute of a node without checks.
func (c *Conductor) Set(n *Node, field string, value any) {
	switch field {
	case "provision_state":
		n.work = nil
		n.Put("reservation", nil)
		n.Put("target_provision_state", nil)
		c.enter(n, State(api.Text(value)))
		return
	case "name":
		delete(c.NodeByName, n.Str("name"))
		if name := api.Text(value); name != "" {
			c.NodeByName[name] = n
		}
	case "traits":
		traits := api.Texts(value)
		sort.Strings(traits)
		value = traits
	}
	n.Put("updated_at", api.Timestamp(c.Now))
	n.Put(field, value)
}

// visit records that a node entered a provision state.
type visit struct {
	time  time.Time
	node  string
	state State
}

// Walk returns the provision states that the node with the UUID has been in.
func (c *Conductor) Walk(uuid string) (states []string) {
	for _, v := range c.visits {
		if v.node == uuid {
			states = append(states, string(v.state))
		}
	}
	return states
}

// MaxBusy returns the highest number of nodes that were in some states at the same time; no states are all transient ones.
func (c *Conductor) MaxBusy(states []string) int {
	busy, peak := map[string]bool{}, 0
	for _, v := range c.visits {
		if counts := slices.Contains(states, string(v.state)) || len(states) == 0 && v.state.Transient(); counts {
			busy[v.node] = true
		} else {
			delete(busy, v.node)
		}
		peak = max(peak, len(busy))
	}
	return peak
}

// Find returns the node with that UUID or name, or nil.
func (c *Conductor) Find(ref string) *Node {
	if n, found := c.NodeByUUID[ref]; found {
		return n
	}
	return c.NodeByName[ref]
}

// Put changes a field. All changes must use it, because it empties the cache of rendered answers.
func (n *Node) Put(field string, value any) {
	n.Fields[field] = value
	n.Rendered = nil
}

// Note sets a key of driver_internal_info.
func (n *Node) Note(key string, value any) {
	info := api.Object(api.Clone(n.Fields["driver_internal_info"]))
	info[key] = value
	n.Put("driver_internal_info", info)
}

// Str returns a string field; "" if it is null.
func (n *Node) Str(field string) string { return api.Text(n.Fields[field]) }

// Flag returns a boolean field; false if it is null.
func (n *Node) Flag(field string) bool {
	b, _ := n.Fields[field].(bool)
	return b
}

// Traits returns a copy of the traits.
func (n *Node) Traits() []string {
	list, _ := n.Fields["traits"].([]string)
	return append([]string{}, list...)
}

// State returns the provision state.
func (n *Node) State() State { return State(n.Str("provision_state")) }

// enter moves the node to a provision state.
func (c *Conductor) enter(n *Node, to State) {
	n.Put("provision_state", string(to))
	n.Put("provision_updated_at", api.Timestamp(c.Now))
	n.Put("updated_at", api.Timestamp(c.Now))
	c.visits = append(c.visits, visit{time: c.Now, node: n.Str("uuid"), state: to})
}

// Locked returns the error for a node that is locked, nil if it is not.
func (n *Node) Locked() error {
	if holder := n.Str("reservation"); holder != "" {
		return api.Fault(http.StatusConflict,
			"Node %s is locked by host %s, please retry after the current operation is completed.", n.Str("uuid"), holder)
	}
	return nil
}

// ProtectedFault is the error of an operation that a protected node refuses.
func ProtectedFault(n *Node) error {
	return api.Fault(http.StatusForbidden, "Node %s is protected and cannot be undeployed, rebuilt or deleted", n.Str("uuid"))
}

// InMaintenance is the error of an operation that a node in maintenance refuses.
func InMaintenance(operation string, n *Node) error {
	return api.Fault(http.StatusBadRequest, "The %s operation can't be performed on node %s because it's in maintenance mode.",
		operation, n.Str("uuid"))
}

// ByInstance returns the node with that instance_uuid, or nil.
func (c *Conductor) ByInstance(instance string) *Node {
	for _, n := range c.Nodes {
		if n.Str("instance_uuid") == instance {
			return n
		}
	}
	return nil
}

const maxTraits = 50

// SetTraits replaces the traits of a node, sorted and without duplicates.
func (c *Conductor) SetTraits(n *Node, traits []string) error {
	sort.Strings(traits)
	traits = slices.Compact(traits)
	if len(traits) > maxTraits {
		return api.Fault(http.StatusBadRequest, "Could not modify traits for node %d as it would exceed the maximum number of traits per "+
			"node (%d vs. %d)",
			n.Order, len(traits), maxTraits)
	}
	if err := n.Locked(); err != nil {
		return err
	}
	n.Put("traits", traits)
	n.Put("updated_at", api.Timestamp(c.Now))
	return nil
}

// Changed reports whether the patch changes the field.
func (n *Node) Changed(patched map[string]any, field string) bool {
	return !reflect.DeepEqual(n.Fields[field], patched[field])
}
